//! Small files of the user, such as secrets and settings: bounded reads, atomic writes, mode 0600.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::Path,
};
use tempfile::NamedTempFile;

/// Maximum size of a file. Secrets and settings are far shorter.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads a file as text. Fails if it is longer than 64 KiB.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {} KiB", MAX_BYTES / 1024)));
    }
    Ok(text)
}

/// Replaces a file atomically. Only its owner can read it. Missing directories are created with mode 0700.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    // Follow a symbolic link, so that the link is kept and its target is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    make_private(directory_of(&path))?;
    replace(&path, text)
}

/// Renames a new file to `path`. A link with this name is replaced, not followed.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(directory_of(path))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Writes a secret as [`write_private`] does, but not through a symbolic link, and not where other users can replace it.
pub(crate) fn write_secret(path: &Path, secret: &str) -> io::Result<()> {
    make_private(directory_of(path))?;
    check_place(path)?;
    replace(path, &format!("{secret}\n"))
}

/// Fails if [`write_secret`] could not write this file.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let directory = directory_of(path);
    make_private(directory)?;
    check_place(path)?;
    NamedTempFile::new_in(directory).map(drop)
}

/// Refuses a symbolic link, and a directory in which other users can replace the file.
fn check_place(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(io::Error::other(
            "it is a symbolic link, which another user may have made; nothing was written. Remove the link, or name the \
             file that it leads to",
        ));
    }
    let directory = directory_of(path);
    if writable_by_others(&fs::metadata(directory)?) {
        let shown = directory.display();
        return Err(io::Error::other(format!(
            "other users can replace files in {shown}; nothing was written. Run `chmod go-w {shown}`, then try again"
        )));
    }
    Ok(())
}

/// Whether users other than the owner can replace the files of a directory. With the sticky bit, as `/tmp` has it, they
/// cannot.
#[cfg(unix)]
fn writable_by_others(directory: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = directory.permissions().mode();
    mode & 0o022 != 0 && mode & 0o1000 == 0
}

#[cfg(not(unix))]
fn writable_by_others(_: &fs::Metadata) -> bool {
    false
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Whether users other than the owner can read a file. `None` if that is unknown.
#[cfg(unix)]
pub(crate) fn readable_by_others(path: &Path) -> Option<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(fs::metadata(path).ok()?.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(crate) fn readable_by_others(_: &Path) -> Option<bool> {
    None
}

/// The name of the user who alone can read a file, or the number if it has no name. `None` if that is unknown.
#[cfg(unix)]
pub(crate) fn only_reader(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(path).ok().filter(|found| found.mode() & 0o044 == 0)?;
    let uid = found.uid().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    Some(name.unwrap_or(uid))
}

#[cfg(not(unix))]
pub(crate) fn only_reader(_: &Path) -> Option<String> {
    None
}

fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_private_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::write(&real, "old and much longer than the new one").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(readable_by_others(&real), Some(true));
        write_private(&link, "new").unwrap();
        assert_eq!((read(&real).unwrap().as_str(), readable_by_others(&real)), ("new", Some(false)));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    /// The place is checked once more when the secret is written: somebody may have changed it since [`check_writable`].
    #[test]
    fn a_secret_is_never_written_through_a_link_or_where_others_can_replace_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let (file, link, nowhere) = (directory.path().join("file"), directory.path().join("link"), "none");
        let set = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
        let mut taken = Vec::new();
        for target in ["file", nowhere] {
            fs::write(&file, "before").unwrap();
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(directory.path().join(target), &link).unwrap();
            taken.extend(write_secret(&link, "secret").is_ok().then(|| format!("write_secret, link to {target}")));
            taken.extend(check_writable(&link).is_ok().then(|| format!("check_writable, link to {target}")));
            assert_eq!((read(&file).unwrap().as_str(), directory.path().join(nowhere).exists()), ("before", false));
        }
        for mode in [0o777, 0o770, 0o707] {
            set(mode);
            taken.extend(write_secret(&file, "secret").is_ok().then(|| format!("write_secret, {mode:o}")));
            taken.extend(check_writable(&file).is_ok().then(|| format!("check_writable, {mode:o}")));
        }
        assert!(taken.is_empty(), "taken: {taken:#?}");
        for mode in [0o700, 0o755, 0o1777] {
            set(mode);
            check_writable(&file).unwrap();
            write_secret(&file, "secret").unwrap();
            assert_eq!(
                (read(&file).unwrap().as_str(), readable_by_others(&file)),
                ("secret\n", Some(false)),
                "{mode:o}"
            );
        }
    }

    #[test]
    fn missing_directories_are_made_for_the_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a/b/c");
        write_private(&file, "x").unwrap();
        assert_eq!(readable_by_others(&directory.path().join("a/b")), Some(false));
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        fs::write(&file, vec![b'x'; 65 * 1024]).unwrap();
        assert!(read(&file).is_err_and(|error| error.to_string().contains("64 KiB")));
    }
}
