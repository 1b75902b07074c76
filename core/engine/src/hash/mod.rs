//! Request hashes and the tables they lead into (`spec/load-balancing.md` sections 17 to 21).
