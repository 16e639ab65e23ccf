//! What becomes of a packet.

use std::sync::Arc;

use super::number::{data, verdict};
use crate::netlink::{Attribute, Writer};

/// What becomes of a packet, or where it goes next.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It passes this hook.
    Accept,
    /// It is lost.
    Drop,
    /// It goes on behind the rule that jumped here; in a base chain the policy decides.
    Return,
    /// It goes on with the next rule.
    Continue,
    /// It goes through this chain, and comes back.
    Jump(Arc<str>),
    /// It goes through this chain instead of this one.
    Goto(Arc<str>),
}

impl Verdict {
    const DROP: i32 = 0;
    const ACCEPT: i32 = 1;
    const CONTINUE: i32 = -1;
    const JUMP: i32 = -3;
    const GOTO: i32 = -4;
    const RETURN: i32 = -5;

    /// Writes it as the data attribute `kind`.
    pub(super) fn write(&self, kind: u16, out: &mut Writer) {
        let (code, chain) = match self {
            Self::Accept => (Self::ACCEPT, None),
            Self::Drop => (Self::DROP, None),
            Self::Return => (Self::RETURN, None),
            Self::Continue => (Self::CONTINUE, None),
            Self::Jump(chain) => (Self::JUMP, Some(chain)),
            Self::Goto(chain) => (Self::GOTO, Some(chain)),
        };
        out.nest(kind, |out| {
            out.nest(data::VERDICT, |out| {
                out.u32(verdict::CODE, code.cast_unsigned());
                if let Some(chain) = chain {
                    out.string(verdict::CHAIN, chain);
                }
            });
        });
    }

    /// Reads a data attribute; none if it holds no verdict, or one of another kind than these.
    pub(super) fn read(from: &Attribute<'_>) -> Option<Self> {
        let held = from.nested().find(|a| a.kind == data::VERDICT)?;
        let code = held.nested().find(|a| a.kind == verdict::CODE)?.u32();
        let chain = || {
            let chain = held.nested().find(|a| a.kind == verdict::CHAIN)?;
            Some(Arc::from(chain.text()))
        };
        Some(match code.cast_signed() {
            Self::ACCEPT => Self::Accept,
            Self::DROP => Self::Drop,
            Self::RETURN => Self::Return,
            Self::CONTINUE => Self::Continue,
            Self::JUMP => Self::Jump(chain()?),
            Self::GOTO => Self::Goto(chain()?),
            _ => return None,
        })
    }
}
