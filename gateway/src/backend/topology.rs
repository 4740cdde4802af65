//! Parses the URL of the Redis behind the gateway.

use std::path::PathBuf;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _};

/// The port of a Sentinel whose address has none.
const DEFAULT_SENTINEL_PORT: &str = "26379";

/// The servers to connect to.
pub(crate) enum Topology {
    /// Some nodes of a cluster; they name the other ones.
    Cluster(Vec<ConnectionInfo>),
    Standalone(ConnectionInfo),
    /// Sentinels, their name for the master, and the login for it. Of the address of `master` only
    /// its use of TLS counts.
    Sentinel {
        sentinels: Vec<ConnectionInfo>,
        name: String,
        master: ConnectionInfo,
    },
}

impl Topology {
    pub(crate) fn unix(socket: PathBuf) -> Option<Self> {
        ConnectionAddr::Unix(socket).into_connection_info().ok().map(Self::Standalone)
    }

    /// Returns the hosts and ports, or the path, for the log. Never contains a user or a password.
    pub(crate) fn servers(&self) -> String {
        let addresses = |infos: &[ConnectionInfo]| {
            let addresses: Vec<_> = infos.iter().map(|info| info.addr().to_string()).collect();
            addresses.join(", ")
        };
        match self {
            Self::Cluster(nodes) => format!("the cluster of {}", addresses(nodes)),
            Self::Standalone(info) => info.addr().to_string(),
            Self::Sentinel { sentinels, name, .. } => {
                format!("{name} of the Sentinels at {}", addresses(sentinels))
            }
        }
    }

    /// Parses a URL; `None` if this build cannot connect to it. The reason is not returned, since
    /// the driver's error text could repeat parts of the URL.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return url.into_connection_info().ok().map(Self::Standalone);
        };
        match scheme.split_once('+') {
            None => url.into_connection_info().ok().map(Self::Standalone),
            Some((base @ ("redis" | "rediss"), "cluster")) => {
                MultiHostUrl::parse(base, rest)?.cluster()
            }
            Some((base @ ("redis" | "rediss"), "sentinel")) => {
                MultiHostUrl::parse(base, rest)?.sentinel()
            }
            Some(_) => None,
        }
    }
}

/// The parts of `USER:PASSWORD@HOST:PORT,HOST:PORT/PATH?QUERY#FRAGMENT`, not yet unescaped.
struct MultiHostUrl<'a> {
    scheme: &'a str,
    login: Option<&'a str>,
    hosts: Vec<&'a str>,
    path: &'a str,
    query: &'a str,
    fragment: Option<&'a str>,
}

impl<'a> MultiHostUrl<'a> {
    fn parse(scheme: &'a str, rest: &'a str) -> Option<Self> {
        let (rest, fragment) = match rest.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (rest, None),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let hosts: Vec<_> = hosts.split(',').collect();
        let empty = hosts.iter().any(|host| host.is_empty());
        (!empty).then_some(Self { scheme, login, hosts, path, query, fragment })
    }

    fn cluster(self) -> Option<Topology> {
        // A cluster has only database 0.
        if !matches!(self.path, "" | "0") || !self.query.is_empty() {
            return None;
        }
        let nodes = self.hosts.iter().map(|host| self.info(self.login, host, ""));
        nodes.collect::<Option<_>>().map(Topology::Cluster)
    }

    fn sentinel(self) -> Option<Topology> {
        let (name, database) = self.path.split_once('/').unwrap_or((self.path, ""));
        // Sentinel accepts no master name that would need escapes.
        if name.is_empty() || name.contains('%') {
            return None;
        }
        let (mut user, mut password) = ("", None);
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=')? {
                ("sentinel-user", value) => user = as_userinfo(value)?,
                ("sentinel-password", value) => password = Some(as_userinfo(value)?),
                _ => return None,
            }
        }
        let login = password.map(|password| format!("{user}:{password}"));
        let sentinels = self.hosts.iter().map(|host| {
            // Looks behind the closing bracket of an IPv6 address, and at the whole of any other
            // host.
            let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
            let port = if has_port { String::new() } else { format!(":{DEFAULT_SENTINEL_PORT}") };
            self.info(login.as_deref(), &format!("{host}{port}"), "")
        });
        Some(Topology::Sentinel {
            sentinels: sentinels.collect::<Option<_>>()?,
            name: name.to_owned(),
            master: self.info(self.login, self.hosts.first()?, database)?,
        })
    }

    /// Has the driver parse a URL with this one host, since it handles escapes and IPv6 addresses.
    fn info(&self, login: Option<&str>, host: &str, database: &str) -> Option<ConnectionInfo> {
        let login = login.map(|login| format!("{login}@")).unwrap_or_default();
        let fragment = self.fragment.map(|text| format!("#{text}")).unwrap_or_default();
        let url = format!("{}://{login}{host}/{database}{fragment}", self.scheme);
        url.into_connection_info().ok()
    }
}

/// Returns the value if it is valid as the userinfo of a URL, where `sentinel` writes it.
fn as_userinfo(value: &str) -> Option<&str> {
    (!value.contains(['/', '@', ':', '[', ']'])).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(url: &str) -> Vec<ConnectionInfo> {
        let Some(Topology::Cluster(nodes)) = Topology::parse(url) else { panic!("{url}") };
        nodes
    }

    fn addresses(infos: &[ConnectionInfo]) -> Vec<String> {
        infos.iter().map(|info| info.addr().to_string()).collect()
    }

    #[test]
    fn a_cluster_is_some_nodes_with_one_login() {
        let nodes = cluster("redis+cluster://user:p%40ss@one:1,[::1]:2,three");
        assert_eq!(addresses(&nodes), ["one:1", "::1:2", "three:6379"]);
        for node in &nodes {
            assert_eq!(node.redis_settings().username(), Some("user"));
            assert_eq!(node.redis_settings().password(), Some("p@ss"));
        }
        assert_eq!(addresses(&cluster("redis+cluster://one/0")), ["one:6379"]);
    }

    #[test]
    fn sentinels_have_a_login_of_their_own() {
        let url = "redis+sentinel://:p%40ss@one:1,[::1],three/main/5\
                   ?sentinel-user=watch&sentinel-password=s%2Fecret";
        let Some(Topology::Sentinel { sentinels, name, master }) = Topology::parse(url) else {
            panic!("{url}");
        };
        assert_eq!(addresses(&sentinels), ["one:1", "::1:26379", "three:26379"]);
        assert_eq!(name, "main");
        for sentinel in &sentinels {
            assert_eq!(sentinel.redis_settings().username(), Some("watch"));
            assert_eq!(sentinel.redis_settings().password(), Some("s/ecret"));
            assert_eq!(sentinel.redis_settings().db(), 0);
        }
        assert_eq!(master.redis_settings().password(), Some("p@ss"));
        assert_eq!(master.redis_settings().db(), 5);
        let Some(Topology::Sentinel { sentinels, .. }) = Topology::parse("redis+sentinel://:p@h/m")
        else {
            panic!();
        };
        assert_eq!(sentinels[0].redis_settings().password(), None);
    }

    #[test]
    fn a_url_without_a_clear_meaning_is_refused() {
        for url in [
            "redis+cluster://",
            "redis+cluster://one,,two",
            "redis+cluster://user@",
            "redis+cluster://one/5",
            "redis+cluster://one?protocol=resp3",
            "redis+cluster://one:port",
            "redis+sentinel://one",
            "redis+sentinel://one/",
            "redis+sentinel://one/main/x",
            "redis+sentinel://one/main?password=secret",
            "redis+sentinel://one/main?sentinel-password",
            "redis+sentinel://one/main?sentinel-password=a@b",
            "unix+cluster://one",
            "redis+proxy://one",
            "http://one",
            "one",
        ] {
            assert!(Topology::parse(url).is_none(), "{url}");
        }
    }
}
