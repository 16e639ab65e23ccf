//! Following each datastore.

mod datastores;
