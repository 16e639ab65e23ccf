//! A real `kubectl` does to objects whatever it can.

mod changing;
mod native;
mod objects;
mod reading;
mod refused;
mod watching;
