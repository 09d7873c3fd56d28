//! Tags of pages that programs have written: enough of HTML to see what a page points to.

/// A tag that opens, with its attributes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HtmlTag {
    pub(super) name: String,
    attributes: Vec<[String; 2]>,
}

impl HtmlTag {
    /// The value of an attribute, its entities decoded.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|[key, _]| key == name).map(|[_, value]| value.as_str())
    }
}

/// The opening tags of a page, in order, without those in comments, scripts and styles.
pub(super) fn tags(page: &str) -> Vec<HtmlTag> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = after(comment, "-->");
        } else if rest.starts_with(|sign: char| sign.is_ascii_alphabetic()) {
            let mut tag = HtmlTag::default();
            rest = read(rest, &mut tag);
            if ["script", "style"].contains(&tag.name.as_str()) {
                rest = after(rest, &format!("</{}", tag.name));
            }
            found.push(tag);
        }
    }
    found
}

/// The text after the first `end`; nothing if there is none.
fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// Reads one tag, behind its `<`; returns what follows its `>`.
fn read<'a>(text: &'a str, tag: &mut HtmlTag) -> &'a str {
    let ends = |sign: char| sign.is_ascii_whitespace() || sign == '>' || sign == '/';
    let at = text.find(ends).unwrap_or(text.len());
    tag.name = text[..at].to_ascii_lowercase();
    let mut rest = &text[at..];
    loop {
        rest = rest.trim_start_matches(|sign: char| sign.is_ascii_whitespace() || sign == '/');
        if rest.is_empty() {
            return rest;
        }
        if let Some(behind) = rest.strip_prefix('>') {
            return behind;
        }
        let ends = |sign: char| sign.is_ascii_whitespace() || sign == '=' || sign == '>';
        let at = rest.find(ends).unwrap_or(rest.len());
        let key = rest[..at].to_ascii_lowercase();
        rest = &rest[at..];
        let mut value = "";
        if let Some(behind) = rest.strip_prefix('=') {
            [value, rest] = value_of(behind);
        }
        tag.attributes.push([key, decoded(value)]);
    }
}

/// The value behind a `=`, and what follows it.
fn value_of(text: &str) -> [&str; 2] {
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote) {
            let at = inside.find(quote).unwrap_or(inside.len());
            return [&inside[..at], inside.get(at + 1..).unwrap_or("")];
        }
    }
    let at = text.find(|sign: char| sign.is_ascii_whitespace() || sign == '>').unwrap_or(text.len());
    [&text[..at], &text[at..]]
}

fn decoded(value: &str) -> String {
    let entities = [("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    entities.iter().fold(value.to_owned(), |value, (entity, sign)| value.replace(entity, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_in_every_way_to_write_them() {
        let found = tags("<p><A href=\"a&amp;b\" id=x title='c > d' hidden>e</a><br/>");
        assert_eq!(found.len(), 3);
        let link = &found[1];
        assert_eq!(link.name, "a");
        let read = ["href", "id", "title", "hidden", "src"].map(|name| link.attribute(name));
        assert_eq!(read, [Some("a&b"), Some("x"), Some("c > d"), Some(""), None]);
    }

    #[test]
    fn comments_scripts_and_styles_hold_no_tags() {
        let page = "<!-- <a href=b> --><script src=c>\"<a href=d>\"</script><style>a < b</style>1 < 2<i>";
        let names: Vec<_> = tags(page).into_iter().map(|tag| tag.name).collect();
        assert_eq!(names, ["script", "style", "i"]);
    }

    #[test]
    fn pages_that_end_in_a_tag_are_read_to_their_end() {
        for page in ["<", "<a", "<a href", "<a href=", "<a href=\"b", "<!-- a", "<script>"] {
            assert!(tags(page).len() <= 1, "{page}");
        }
    }
}
