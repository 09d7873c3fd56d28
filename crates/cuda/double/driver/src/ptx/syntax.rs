//! Statements of a kernel, before anything in them has a meaning.

use super::error::ParseError;
use super::lex::Token;

/// An instruction as it is written.
#[derive(Clone, Debug)]
pub(super) struct Statement<'a> {
    pub(super) line: usize,
    pub(super) guard: Option<GuardSyntax<'a>>,
    /// The opcode and its modifiers.
    pub(super) words: Vec<&'a str>,
    pub(super) operands: Vec<OperandSyntax<'a>>,
}

/// The predicate before an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuardSyntax<'a> {
    pub(super) name: &'a str,
    pub(super) is_negated: bool,
}

/// An operand as it is written.
#[derive(Clone, Debug)]
pub(super) enum OperandSyntax<'a> {
    Name(&'a str),
    /// `!p`
    Negated(&'a str),
    /// `d|p`
    Pair(&'a str, &'a str),
    Number(Number),
    /// `[a+8]`
    Address(Box<OperandSyntax<'a>>, i64),
    /// `{a, b}`
    Group(Vec<OperandSyntax<'a>>),
}

/// A number as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// An integer in two's complement.
    Integer(u64),
    /// The bits of a single.
    Single(u32),
    /// The bits of a double.
    Double(u64),
}

impl Number {
    /// Reads a number without its sign.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
            return (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok().map(Self::Double))?;
        }
        if let Some(digits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
            return (digits.len() == 8).then(|| u32::from_str_radix(digits, 16).ok().map(Self::Single))?;
        }
        let text = text.strip_suffix('U').unwrap_or(text);
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let parsed = digits.map_or_else(|| decimal(text), |digits| u64::from_str_radix(digits, 16).ok());
        parsed.map(Self::Integer)
    }
}

/// Decimal digits; a leading zero would make them octal, which is not read.
fn decimal(text: &str) -> Option<u64> {
    let is_octal = text.len() > 1 && text.starts_with('0');
    if is_octal { None } else { text.parse().ok() }
}

/// The tokens of a text, read from the first on.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tokens: Vec<Token<'a>>) -> Self {
        Self { tokens, position: 0 }
    }

    /// Returns the text of the token `ahead` of the next; nothing after the last.
    pub(super) fn peek(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.position + ahead).map_or("", |token| token.text)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.position >= self.tokens.len()
    }

    /// Returns the line of the next token, or of the last.
    pub(super) fn line(&self) -> usize {
        self.tokens.get(self.position).or_else(|| self.tokens.last()).map_or(1, |token| token.line)
    }

    /// Returns an error at the next token.
    pub(super) fn refuse(&self, what: &'static str) -> ParseError {
        ParseError { line: self.line(), what, found: self.peek(0).to_owned() }
    }

    pub(super) fn next(&mut self) -> &'a str {
        let text = self.peek(0);
        self.position += 1;
        text
    }

    /// Takes the next token if it is `text`.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let is_next = self.peek(0) == text;
        self.position += usize::from(is_next);
        is_next
    }

    pub(super) fn expect(&mut self, text: &str, what: &'static str) -> Result<(), ParseError> {
        if self.takes(text) { Ok(()) } else { Err(self.refuse(what)) }
    }

    pub(super) fn word(&mut self, what: &'static str) -> Result<&'a str, ParseError> {
        match self.tokens.get(self.position) {
            Some(token) if token.is_word() => Ok(self.next()),
            _ => Err(self.refuse(what)),
        }
    }

    /// Reads a number with its sign.
    pub(super) fn number(&mut self) -> Result<Number, ParseError> {
        let is_negative = self.takes("-");
        let number = Number::parse(self.peek(0)).ok_or_else(|| self.refuse("not a number"))?;
        match number {
            Number::Integer(value) if is_negative => {
                self.position += 1;
                Ok(Number::Integer(value.wrapping_neg()))
            }
            _ if is_negative => Err(self.refuse("not an integer")),
            _ => {
                self.position += 1;
                Ok(number)
            }
        }
    }

    /// Reads a count, such as a size.
    pub(super) fn count(&mut self) -> Result<usize, ParseError> {
        let refused = self.refuse("not a count");
        match self.number()? {
            Number::Integer(value) if value <= 1 << 40 => Ok(value as usize),
            _ => Err(refused),
        }
    }

    /// Reads an instruction up to its semicolon.
    pub(super) fn statement(&mut self) -> Result<Statement<'a>, ParseError> {
        let guard = self.guard()?;
        let line = self.line();
        let words: Vec<&str> = self.word("not an instruction")?.split('.').collect();
        if words[0] == "call" {
            return Err(ParseError { line, what: "calls are not interpreted", found: words.join(".") });
        }
        let mut operands = Vec::new();
        while !self.takes(";") {
            if !operands.is_empty() {
                self.expect(",", "a comma or a semicolon expected")?;
            }
            operands.push(self.operand()?);
        }
        Ok(Statement { line, guard, words, operands })
    }

    fn guard(&mut self) -> Result<Option<GuardSyntax<'a>>, ParseError> {
        if !self.takes("@") {
            return Ok(None);
        }
        let is_negated = self.takes("!");
        Ok(Some(GuardSyntax { name: self.word("not a predicate")?, is_negated }))
    }

    fn operand(&mut self) -> Result<OperandSyntax<'a>, ParseError> {
        match self.peek(0) {
            "{" => self.group(),
            "[" => self.address(),
            "!" => {
                self.position += 1;
                Ok(OperandSyntax::Negated(self.word("not a predicate")?))
            }
            _ => self.plain(),
        }
    }

    /// A name, two names, or a number.
    fn plain(&mut self) -> Result<OperandSyntax<'a>, ParseError> {
        if !self.tokens.get(self.position).is_some_and(|token| token.is_word()) {
            return self.number().map(OperandSyntax::Number);
        }
        let name = self.next();
        if self.takes("|") {
            return Ok(OperandSyntax::Pair(name, self.word("not a predicate")?));
        }
        Ok(OperandSyntax::Name(name))
    }

    fn group(&mut self) -> Result<OperandSyntax<'a>, ParseError> {
        self.expect("{", "a group expected")?;
        let mut parts = vec![self.plain()?];
        while self.takes(",") {
            parts.push(self.plain()?);
        }
        self.expect("}", "the end of a group expected")?;
        Ok(OperandSyntax::Group(parts))
    }

    fn address(&mut self) -> Result<OperandSyntax<'a>, ParseError> {
        self.expect("[", "an address expected")?;
        let base = self.plain()?;
        let offset = match self.takes("+") {
            true => match self.number()? {
                Number::Integer(value) => value as i64,
                _ => return Err(self.refuse("not an offset")),
            },
            false => 0,
        };
        self.expect("]", "the end of an address expected")?;
        Ok(OperandSyntax::Address(Box::new(base), offset))
    }
}

#[cfg(test)]
mod tests {
    use super::super::lex::tokens;
    use super::*;

    fn statement(text: &str) -> Result<Statement<'_>, ParseError> {
        Reader::new(tokens(text)).statement()
    }

    #[test]
    fn an_instruction_is_read_with_all_forms_of_operands() {
        let found = statement("@!%p1 ld.global.v2.f64 {%a, _}, [%rd1+-16];").unwrap();
        assert!(found.guard.is_some_and(|guard| guard.is_negated && guard.name == "%p1"));
        assert_eq!(found.words, ["ld", "global", "v2", "f64"]);
        assert!(matches!(&found.operands[1], OperandSyntax::Address(_, -16)));
        let found = statement("x d|p, !%p, -1, 0d7FF0000000000000, 0x10, 0f3F800000;").unwrap();
        assert!(matches!(found.operands[0], OperandSyntax::Pair("d", "p")));
        assert!(matches!(found.operands[2], OperandSyntax::Number(Number::Integer(u64::MAX))));
        assert!(matches!(found.operands[3], OperandSyntax::Number(Number::Double(_))));
    }

    #[test]
    fn what_is_no_statement_is_refused_with_its_line() {
        for text in ["ret", "add.s32 %a %b;", "\nld [%a;", "call (a), f, (b);", "mov %a, 017;", "add %a, 0d1;"] {
            assert!(statement(text).is_err(), "{text}");
        }
        assert_eq!(statement("\n\ncall f;").unwrap_err().line, 3);
    }
}
