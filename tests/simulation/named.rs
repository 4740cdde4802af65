//! Enumerations whose members have names: faults, kinds of objects, events.

/// Declares an enumeration with a list of all members and a name for each.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $member:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum $name { $($(#[$what])* $member,)* }

        impl $name {
            /// All members, in order.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$member,)*];

            /// The member's name.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$member => $text,)* }
            }
        }
    };
}

pub(crate) use named;
