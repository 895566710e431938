//! Recognises files and folders with keys or passwords.

use std::io::Read;
use std::path::Path;

use crate::skill::SKILL_FILE;
use practicum_core::tree::open_regular;

/// Folders in which tools keep keys and passwords.
const CREDENTIAL_FOLDERS: &[&str] = &[
    ".aws",
    ".azure",
    ".docker",
    ".gcloud",
    ".gnupg",
    ".kube",
    ".oci",
    ".password-store",
    ".ssh",
    "keyrings",
    "secrets",
];

/// Files in which tools keep keys and passwords.
const CREDENTIAL_FILES: &[&str] = &[
    ".bash_history",
    ".claude.json",
    ".databrickscfg",
    ".kubeconfig",
    ".terraformrc",
    ".zsh_history",
    "env.local",
    "keystore.properties",
    "local.settings.json",
    "rclone.conf",
    "settings.local.json",
    ".boto",
    ".credentials.json",
    ".dockercfg",
    ".dockerconfigjson",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".vault-token",
    "_netrc",
    "application_default_credentials.json",
    "kubeconfig",
    "oauth_creds.json",
];

const CREDENTIAL_NAME_PREFIXES: &[&str] =
    &[".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "client_secret"];

const CREDENTIAL_NAME_SUFFIXES: &[&str] = &[
    "-key.json",
    "_ecdsa",
    "_ed25519",
    "_rsa",
    ".tfstate",
    ".tfstate.backup",
    ".env",
    ".jks",
    ".kdbx",
    ".key",
    ".keystore",
    ".keytab",
    ".p12",
    ".p8",
    ".pem",
    ".pfx",
    ".pkcs12",
    ".ppk",
    ".tfvars",
];

/// Names that are credentials as data files, but a mere subject as source files or documents.
const CREDENTIAL_DATA_NAMES: &[&str] =
    &["credentials", "secrets", "secret", "apikey", "apikeys", "api_key", "api_keys", "api-key", "api-keys"];
const DATA_ENDINGS: [&str; 10] =
    ["", "json", "yaml", "yml", "toml", "ini", "xml", "csv", "txt", "properties"];

/// Says whether a file, folder or link contains keys or passwords: by its name in lowercase, and for common names
/// by how the file begins.
pub fn is_credential(path: &Path, name: &str, kind: std::fs::FileType) -> bool {
    if kind.is_dir() {
        // A skill about secrets may also have such a name.
        return (CREDENTIAL_FOLDERS.contains(&name) || name == ".env") && !path.join(SKILL_FILE).is_file();
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_data = CREDENTIAL_DATA_NAMES.contains(&stem) && DATA_ENDINGS.contains(&ending);
    let of_service = ending == "json"
        && ["service-account", "service_account", "serviceaccount", "firebase-adminsdk"]
            .iter()
            .any(|word| stem.contains(word));
    CREDENTIAL_FILES.contains(&name)
        || CREDENTIAL_NAME_PREFIXES.iter().any(|begin| name.starts_with(begin))
        || CREDENTIAL_NAME_SUFFIXES.iter().any(|end| name.ends_with(end))
        || is_data
        || of_service
        || is_in_folder_of_tool(path, name)
        || kind.is_file() && contains_secret(path, name, ending)
}

/// Says whether a file with a common name lies where a tool keeps its login.
fn is_in_folder_of_tool(path: &Path, name: &str) -> bool {
    let folder =
        path.parent().and_then(Path::file_name).map(|folder| folder.to_string_lossy().to_lowercase());
    let places = [(".codex", "auth.json"), ("gh", "hosts.yml"), (".m2", "settings.xml")];
    places.iter().any(|(place, file)| folder.as_deref() == Some(*place) && name == *file)
}

/// Says whether a file whose name proves nothing contains a token or a private key.
fn contains_secret(path: &Path, name: &str, ending: &str) -> bool {
    let words: &[&str] = match name {
        ".npmrc" | ".yarnrc" => &["_auth", "_password"],
        ".yarnrc.yml" => &["npmauthtoken", "npmauthident"],
        "auth.json" | "token.json" | "tokens.json" => &[
            "access_token",
            "refresh_token",
            "id_token",
            "api_key",
            "apikey",
            "client_secret",
            "password",
            "\"auth\"",
        ],
        _ if ["", "asc", "txt", "priv", "crt", "cer"].contains(&ending) => {
            return read_beginning(path, 64).is_some_and(|text| {
                text.trim_start().starts_with("-----begin") && text.contains("private key")
            });
        }
        _ => return false,
    };
    // A file that cannot be read may contain a secret.
    read_beginning(path, 64 * 1024).is_none_or(|text| words.iter().any(|word| text.contains(word)))
}

/// Gives the first bytes of a file, in lowercase.
fn read_beginning(path: &Path, most: u64) -> Option<String> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names_and_else_by_how_they_begin() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text, expected) in [
            (".env", "", true),
            (".env.local", "", true),
            (".env.example", "", true),
            (".envrc", "", true),
            ("prod.env", "", true),
            ("Server.PEM", "", true),
            ("tls.key", "", true),
            ("id_rsa", "", true),
            ("id_ed25519.pub", "", true),
            (".npmrc", "//npm.example.com/:_authToken=abc", true),
            (".npmrc", "save-exact=true", false),
            (".yarnrc.yml", "npmAuthToken: abc", true),
            (".yarnrc.yml", "nodeLinker: node-modules", false),
            (".netrc", "", true),
            ("credentials.json", "", true),
            ("Credentials", "", true),
            ("credentials.py", "", false),
            ("credentials.md", "", false),
            ("secrets.yaml", "", true),
            ("my-service-account-dev.json", "", true),
            ("service-account.md", "", false),
            ("deploy_key", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc", true),
            ("deploy_key", "the key is in the safe", false),
            ("notes.txt", "-----BEGIN RSA PRIVATE KEY-----", true),
            ("cert.crt", "-----BEGIN CERTIFICATE-----", false),
            ("store.p12", "", true),
            ("environment.yaml", "", false),
            ("keyboard.py", "", false),
            ("README.md", "", false),
            ("deploy_ed25519", "", true),
            ("my-key.json", "", true),
            ("terraform.tfstate", "", true),
            ("API_KEY.txt", "", true),
            ("api_key.py", "", false),
            (".claude.json", "", true),
            ("settings.local.json", "", true),
            ("auth.json", "{\"access_token\": \"a\"}", true),
            ("auth.json", "{\"route\": \"/login\"}", false),
            ("token.json", "{\"refresh_token\": \"a\"}", true),
            ("token.json", "{\"color\": \"red\"}", false),
            ("key.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----", true),
            ("key.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----", false),
            ("hosts.yml", "all:", false),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("write");
            let kind = path.symlink_metadata().expect("metadata").file_type();
            assert_eq!(is_credential(&path, &name.to_lowercase(), kind), expected, "{name} {text:?}");
        }
    }

    #[test]
    fn folders_and_links_are_known_by_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, expected) in [
            (".ssh", true),
            (".aws", true),
            (".env", true),
            ("secrets", true),
            (".docker", true),
            ("keyrings", true),
            ("tokens", false),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).expect("create");
            let kind = path.symlink_metadata().expect("metadata").file_type();
            assert_eq!(is_credential(&path, name, kind), expected, "{name}");
        }
        let skill = folder.path().join("secrets");
        std::fs::write(skill.join("SKILL.md"), "").expect("written");
        assert!(!is_credential(&skill, "secrets", skill.metadata().expect("metadata").file_type()));
        let link = folder.path().join(".env.local");
        std::os::unix::fs::symlink("elsewhere", &link).expect("linked");
        let kind = link.symlink_metadata().expect("metadata").file_type();
        assert!(is_credential(&link, ".env.local", kind));
    }
}
