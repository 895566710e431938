//! The check `urls_reachable`: web addresses in a text answer.

use std::net::IpAddr;
use std::sync::Arc;

use reqwest::Url;
use serde_json::{Value, json};

use super::RuleKind;
use super::counting::decode_count;
use super::formats::URL_FORMAT;
use super::public_address::{is_public, is_reserved_name};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckedText, NotScoredReason, Rule, UrlChecker};

pub static KIND: RuleKind = RuleKind {
    key: "urls_reachable",
    doc: "at least so many different addresses in the text answer (1 if no number is given); asked \
          only with --allow-network, and unscored without where the text alone does not decide it",
    schema: || json!({"type": ["integer", "null"]}),
    decode: |node, diagnostics| Some(Arc::new(UrlsReachableRule(decode_count(KIND.key, node, diagnostics)?))),
};

/// The rule of the check `urls_reachable`, with the required count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlsReachableRule(i64);

/// The largest number of addresses to request: a text with a thousand links must not cause a thousand requests.
const MOST_URLS: usize = 20;

impl UrlsReachableRule {
    /// Checks the addresses in the texts. Without a network it gives only what can be known without one.
    pub fn check_urls(&self, texts: &[CheckedText<'_>], network: Option<&dyn UrlChecker>) -> CheckFinding {
        let wanted = self.0;
        let enough = |count: usize| count as i128 >= i128::from(wanted);
        if enough(0) {
            return CheckFinding::new(true, format!("at least {wanted} wanted"));
        }
        let candidates = match public_urls(texts) {
            Ok(candidates) => candidates,
            Err(why) => return CheckFinding::not_scored(NotScoredReason::CheckFailed(why)),
        };
        if !enough(candidates.len()) {
            let message =
                format!("{} public addresses in the text, at least {wanted} wanted", candidates.len());
            return CheckFinding::new(false, message);
        }
        let Some(network) = network else {
            return CheckFinding::not_scored(NotScoredReason::NetworkNotAllowed);
        };
        let (mut reached, mut problems) = (0, Vec::new());
        for url in &candidates {
            match network.check_url(url.as_str()) {
                Ok(()) => reached += 1,
                Err(why) => problems.push(format!("{url}: {why}")),
            }
            if enough(reached) {
                break;
            }
        }
        let message = format!("{reached} addresses answered, at least {wanted} wanted");
        problems
            .into_iter()
            .take(5)
            .fold(CheckFinding::new(enough(reached), message), CheckFinding::with_evidence)
    }
}

/// Gives the different addresses in the texts that could be public, in order.
fn public_urls(texts: &[CheckedText<'_>]) -> Result<Vec<Url>, String> {
    let mut found: Vec<String> = Vec::new();
    for checked in texts {
        let own = URL_FORMAT.find_all(&checked.text, MOST_URLS).map_err(|too_hard| too_hard.to_string())?;
        found.extend(own.into_iter().filter(|url| !found.contains(url)).collect::<Vec<_>>());
    }
    found.truncate(MOST_URLS);
    Ok(found.iter().filter_map(|url| Url::parse(url).ok()).filter(could_be_public).collect())
}

fn could_be_public(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => is_public(address),
        Err(_) => !is_reserved_name(host),
    }
}

impl Rule for UrlsReachableRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        self.check_urls(evidence.texts, evidence.url_checker)
    }

    fn uses_network(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::check_rows;
    use super::*;

    #[test]
    fn without_a_network() {
        check_rows(
            &KIND,
            &[
                ("~", "see https://example.org", "not_scored"),
                ("2", "https://a.example.org https://b.example.org", "not_scored"),
                ("2", "https://a.example.org https://a.example.org", "fail"),
                ("~", "no link", "fail"),
                ("~", "http://127.0.0.1/ http://localhost:8080/ http://[::1]/ http://10.0.0.1", "fail"),
                ("~", "http://2130706433/ http://0x7f.1/ http://h.invalid/", "fail"),
                ("0", "", "pass"),
                ("many", "", "refused"),
            ],
        );
    }

    /// A network on which the hosts that begin with "up" answer.
    struct Up;

    impl UrlChecker for Up {
        fn check_url(&self, url: &str) -> Result<(), String> {
            let up = url.starts_with("https://up");
            if up { Ok(()) } else { Err("no answer".to_owned()) }
        }
    }

    #[test]
    fn with_a_network() {
        let text = "https://up1.example.org, https://down.example.org and https://up2.example.org/x";
        for (wanted, expected) in [(1, "pass"), (2, "pass"), (3, "fail")] {
            let finding = UrlsReachableRule(wanted).check_urls(&[CheckedText::without_path(text)], Some(&Up));
            assert_eq!(finding.verdict.name(), expected, "{wanted}");
        }
    }

    #[test]
    fn so_many_and_no_more_are_asked_for() {
        let text: String = (0..50).map(|n| format!("https://up.example.org/{n} ")).collect();
        assert_eq!(public_urls(&[CheckedText::without_path(text)]).map(|urls| urls.len()), Ok(MOST_URLS));
    }
}
