//! What no compiler checks: which room may know which, which words a room uses, and how long things are.

mod tidy {
    mod files;
    mod papers;
    mod rooms;
    mod sizes;
    mod words;
}
