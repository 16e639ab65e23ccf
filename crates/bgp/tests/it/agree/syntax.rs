//! Statements of BIRD's language: what a configuration holds, and what a filter does.

use std::collections::VecDeque;
use std::net::IpAddr;

use ipnet::IpNet;

use super::lexer::Token;

/// Something that ends with a semicolon or a block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) words: Vec<Token>,
    pub(crate) body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    None,
    Items(Vec<Item>),
    Code(Vec<Statement>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    Accept,
    Reject,
    If(Expression, Vec<Statement>, Vec<Statement>),
    Set(String, Expression),
    Add(String, Expression),
    Prepend(Expression),
    Call(String, Vec<Expression>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Number(u32),
    Text(String),
    Address(IpAddr),
    Network(IpNet),
    /// Members of a community.
    Tuple(Vec<u32>),
    Set(Vec<Member>),
    /// The beginning of a path.
    Path(Vec<u32>),
    Name(String),
    Defined(String),
    Not(Box<Expression>),
    Both(&'static str, Box<Expression>, Box<Expression>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Member {
    /// With the least and the greatest length.
    Network(IpNet, u8, u8),
    Address(IpAddr),
    Name(String),
}

pub(crate) struct Parser(VecDeque<Token>);

impl Parser {
    pub(crate) fn new(tokens: Vec<Token>) -> Self {
        Self(tokens.into())
    }

    /// All items up to the end, or to the brace that ends their block.
    pub(crate) fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while !self.0.is_empty() && !self.is_at("}") {
            let item = self.item();
            if !item.words.is_empty() {
                items.push(item);
            }
        }
        items
    }

    fn item(&mut self) -> Item {
        let mut words = Vec::new();
        loop {
            if self.take(";") {
                let body = Body::None;
                return Item { words, body };
            }
            if self.take("{") {
                let is_code = words.iter().any(|word| {
                    matches!(word, Token::Word(word) if word == "function" || word == "filter")
                });
                let body = if is_code {
                    Body::Code(self.statements())
                } else {
                    Body::Items(self.items())
                };
                self.expect("}");
                return Item { words, body };
            }
            // The last option of a list needs no semicolon.
            if self.is_at("}") {
                let body = Body::None;
                return Item { words, body };
            }
            words.push(self.next());
        }
    }

    fn statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        while !self.is_at("}") {
            statements.extend(self.statement());
        }
        statements
    }

    /// One, or those of a block.
    fn statement(&mut self) -> Vec<Statement> {
        if self.take("{") {
            let block = self.statements();
            self.expect("}");
            return block;
        }
        let word = self.word();
        let statement = match &*word {
            "if" => {
                let condition = self.expression();
                assert_eq!(self.word(), "then");
                let then = self.statement();
                let is_else = self.0.front() == Some(&Token::Word("else".to_owned()));
                let otherwise = if is_else {
                    self.next();
                    self.statement()
                } else {
                    Vec::new()
                };
                return vec![Statement::If(condition, then, otherwise)];
            }
            "accept" => Statement::Accept,
            "reject" => Statement::Reject,
            _ if self.take("=") => Statement::Set(word, self.expression()),
            _ => {
                let mut arguments = self.arguments();
                if let Some(list) = word.strip_suffix(".add") {
                    Statement::Add(list.to_owned(), arguments.remove(0))
                } else if word == "bgp_path.prepend" {
                    Statement::Prepend(arguments.remove(0))
                } else {
                    Statement::Call(word, arguments)
                }
            }
        };
        self.expect(";");
        vec![statement]
    }

    fn arguments(&mut self) -> Vec<Expression> {
        self.expect("(");
        let mut arguments = Vec::new();
        while !self.take(")") {
            arguments.push(self.expression());
            self.take(",");
        }
        arguments
    }

    /// Both operators bind alike.
    fn expression(&mut self) -> Expression {
        let mut left = self.comparison();
        while let Some(operator) = self.take_any(&["&&", "||"]) {
            let right = self.comparison();
            left = Expression::Both(operator, left.into(), right.into());
        }
        left
    }

    fn comparison(&mut self) -> Expression {
        let left = self.difference();
        match self.take_any(&["=", "!=", "~", "!~", "<", ">"]) {
            Some(operator) => Expression::Both(operator, left.into(), self.difference().into()),
            None => left,
        }
    }

    fn difference(&mut self) -> Expression {
        let mut left = self.value();
        while self.take("-") {
            let right = self.value();
            left = Expression::Both("-", left.into(), right.into());
        }
        left
    }

    fn value(&mut self) -> Expression {
        match self.next() {
            Token::Number(number) => Expression::Number(number),
            Token::Text(text) => Expression::Text(text),
            Token::Address(address) => Expression::Address(address),
            Token::Network(network) => Expression::Network(network),
            Token::Word(word) if word == "defined" => {
                self.expect("(");
                let name = self.word();
                self.expect(")");
                Expression::Defined(name)
            }
            Token::Word(word) => Expression::Name(word),
            Token::Mark("!") => Expression::Not(self.value().into()),
            Token::Mark("(") => {
                let inner = self.expression();
                if self.take(")") {
                    return inner;
                }
                let mut numbers = vec![number(&inner)];
                while self.take(",") {
                    numbers.push(number(&self.expression()));
                }
                self.expect(")");
                Expression::Tuple(numbers)
            }
            Token::Mark("[") => {
                let mut members = Vec::new();
                while !self.take("]") {
                    members.push(self.member());
                    self.take(",");
                }
                Expression::Set(members)
            }
            Token::Mark("[=") => {
                let mut numbers = Vec::new();
                while !self.take("*") {
                    numbers.push(self.number());
                }
                self.expect("=]");
                Expression::Path(numbers)
            }
            other @ Token::Mark(_) => panic!("{other:?} is no value; then {:?}", self.0.front()),
        }
    }

    fn member(&mut self) -> Member {
        match self.next() {
            Token::Network(network) => {
                let own = network.prefix_len();
                if self.take("+") {
                    return Member::Network(network, own, network.max_prefix_len());
                }
                if !self.take("{") {
                    return Member::Network(network, own, own);
                }
                let min = self.number();
                self.expect(",");
                let max = self.number();
                self.expect("}");
                let length = |number: u32| u8::try_from(number).unwrap();
                Member::Network(network, length(min), length(max))
            }
            Token::Address(address) => Member::Address(address),
            Token::Word(name) => Member::Name(name),
            other => panic!("{other:?} is no member of a set"),
        }
    }

    fn number(&mut self) -> u32 {
        number(&self.value())
    }

    fn word(&mut self) -> String {
        match self.next() {
            Token::Word(word) => word,
            other => panic!("{other:?} is no word"),
        }
    }

    fn next(&mut self) -> Token {
        self.0.pop_front().expect("more text")
    }

    fn is_at(&self, mark: &str) -> bool {
        matches!(self.0.front(), Some(Token::Mark(found)) if *found == mark)
    }

    fn take(&mut self, mark: &str) -> bool {
        let is_there = self.is_at(mark);
        if is_there {
            self.0.pop_front();
        }
        is_there
    }

    fn take_any(&mut self, marks: &[&'static str]) -> Option<&'static str> {
        marks.iter().copied().find(|mark| self.take(mark))
    }

    #[track_caller]
    fn expect(&mut self, mark: &str) {
        assert!(self.take(mark), "{mark} before {:?}", self.0.front());
    }
}

fn number(expression: &Expression) -> u32 {
    match expression {
        Expression::Number(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}
