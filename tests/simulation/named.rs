//! Enumerations whose members have names: of faults, of objects, of what was seen.

/// An enumeration, all its members, and the name of each.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $member:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum $name { $($(#[$what])* $member,)* }

        impl $name {
            /// All of them, in their order.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$member,)*];

            /// What it is called.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$member => $text,)* }
            }
        }
    };
}

pub(crate) use named;
