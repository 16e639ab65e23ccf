//! The server of `tortie up`, without the command.

mod standalone;
