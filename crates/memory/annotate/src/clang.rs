//! clang, which reads the source.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::AnnotateError;
use crate::node::SyntaxNode;

/// Has clang read a source with these flags, and returns its syntax tree.
pub(crate) fn tree(source: &Path, flags: &[String]) -> Result<SyntaxNode, AnnotateError> {
    let file = source.display().to_string();
    let mut command = Command::new("clang");
    command.args(["-fsyntax-only", "-w", "-Xclang", "-ast-dump=json", "-x", "c"]).args(flags).arg("--").arg(source);
    let output = command.stdin(Stdio::null()).output().map_err(|source| AnnotateError::NoClang { source })?;
    if !output.status.success() {
        return Err(AnnotateError::Clang { file, messages: String::from_utf8_lossy(&output.stderr).into_owned() });
    }
    SyntaxNode::parse(&output.stdout, &file).map_err(|source| AnnotateError::Tree { file, source })
}
