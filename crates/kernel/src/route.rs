//! The kernel's routing over netlink: links with their addresses, routes and neighbours.
//!
//! A [`Batch`] collects operations; [`Socket::apply`] does all of them and tells which were refused. Operations on links are
//! in [`crate::link`], which uses the same socket.
//!
//! ```no_run
//! # fn main() -> tortie_kernel::route::Result<()> {
//! use tortie_kernel::route::{Route, Socket, MAIN_TABLE};
//!
//! let mut socket = Socket::open()?;
//! let device = socket.link("cali1")?.map(|link| link.index);
//! let route = Route { device, ..Route::to("10.0.0.1/32".parse().unwrap()) };
//! socket.execute(|batch| batch.replace_route(&route))?;
//! assert!(socket.routes(MAIN_TABLE)?.contains(&route.as_listed()));
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - An operation that is refused hinders none of the others: there are no transactions here.
//! - A list is complete: where the kernel's tables changed during reading, they are read again.

mod batch;
mod encode;
mod entry;
mod error;
mod forwarding;
mod neighbour;
mod number;
mod socket;

pub use batch::Batch;
pub use entry::{Kind, LAST_METRIC, MAIN_TABLE, Protocol, Route, Scope};
pub use error::{Error, Result};
pub use forwarding::Forwarding;
pub use neighbour::Neighbour;
pub use socket::Socket;

pub(crate) use encode::{read_address, read_number, read_route, write_address};
pub(crate) use number::{family, flag, header};
