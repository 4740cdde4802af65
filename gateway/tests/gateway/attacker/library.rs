//! Caches the templates of the names in use.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::call::Template;

#[derive(Debug, Default)]
pub(crate) struct Library(BTreeMap<(String, String), Rc<[Template]>>);

impl Library {
    /// Returns every call that the library makes on these two names.
    pub(crate) fn about(&mut self, one: &str, two: &str) -> Rc<[Template]> {
        let names = (one.to_owned(), two.to_owned());
        Rc::clone(self.0.entry(names).or_insert_with(|| Template::all(one, two).into()))
    }
}
