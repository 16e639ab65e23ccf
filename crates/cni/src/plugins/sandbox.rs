//! Working in a container's network namespace.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

use tortie_kernel::namespace;
use tortie_kernel::route::Socket;

use super::Call;
use crate::error::{Code, Error, Result};
use crate::network::{kernel, open_namespace};

impl Call<'_> {
    /// Works in the container's namespace, which must be there.
    pub(super) fn in_container<T: Send>(
        &self,
        work: impl FnOnce(&mut Socket) -> Result<T> + Send,
    ) -> Result<T> {
        let container = open_namespace(&self.request.namespace)?;
        enter(&container, work)
    }

    /// Works in the container's namespace, unless that is gone.
    pub(super) fn in_remaining_container(
        &self,
        work: impl FnOnce(&mut Socket) -> Result<()> + Send,
    ) -> Result<()> {
        let path = &self.request.namespace;
        let container = match namespace::open(path) {
            Ok(container) => container,
            Err(error)
                if path.as_os_str().is_empty() || error.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(());
            }
            Err(error) => {
                let message = format!("the network namespace {} cannot be opened", path.display());
                return Err(Error::of(Code::InvalidNamespace, message)(error));
            }
        };
        // That of the node is not to be changed, whatever a runtime says.
        let is_own = namespace::is_own(&container).unwrap_or(true);
        if is_own {
            return Ok(());
        }
        match namespace::run_in(container.as_fd(), || {
            open().and_then(|mut socket| work(&mut socket))
        }) {
            // Of a namespace that was unmounted an ordinary file may be left.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            entered => entered.map_err(kernel(
                "the container's network namespace cannot be entered",
            ))?,
        }
    }
}

fn enter<T: Send>(
    container: &File,
    work: impl FnOnce(&mut Socket) -> Result<T> + Send,
) -> Result<T> {
    let entered = namespace::run_in(container.as_fd(), || {
        open().and_then(|mut socket| work(&mut socket))
    });
    entered.map_err(kernel(
        "the container's network namespace cannot be entered",
    ))?
}

/// The routing of the calling thread's namespace.
pub(super) fn open() -> Result<Socket> {
    Socket::open().map_err(kernel("the kernel's routing cannot be reached"))
}
