//! The page of the console: static files that are part of the binary (`build.rs` lists what is in `console/`).

use crate::admin::{Page, not_allowed, text};
use crate::reply::ResponseBody;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use md5::{Digest as _, Md5};
use std::sync::LazyLock;

/// The files of the page by their paths.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// The entity tag of the page itself, which has the same name in every version.
static INDEX_TAG: LazyLock<HeaderValue> = LazyLock::new(|| {
    let index = find("/").map_or(&[][..], |(_, bytes)| bytes);
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(Md5::digest(index)));
    HeaderValue::from_str(&tag).expect("a quoted word is a header")
});

/// Whether a path is one of the page, or would be one in another version of it.
pub(super) fn is_file(path: &str) -> bool {
    path.starts_with(ASSETS) || find(path).is_some()
}

/// Answers with a file.
pub(super) fn answer(parts: &Parts) -> Page {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    let path = parts.uri.path();
    let Some((name, bytes)) = find(path) else { return text(StatusCode::NOT_FOUND, GONE) };
    let is_asset = path.starts_with(ASSETS);
    let is_known = !is_asset && path == "/" && has_tag(&parts.headers, INDEX_TAG.as_bytes());
    let shown = if is_known || parts.method == Method::HEAD { &[][..] } else { bytes };
    let mut response = Response::new(ResponseBody::whole(Bytes::from_static(shown)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(if is_asset { FOR_EVER } else { "no-cache" }));
    if path == "/" {
        headers.insert(ETAG, INDEX_TAG.clone());
    }
    for (name, value) in PAGE_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    *response.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    response
}

fn find(path: &str) -> Option<(&'static str, &'static [u8])> {
    let name = path.strip_prefix('/')?;
    let name = if name.is_empty() { "index.html" } else { name };
    FILES.iter().find(|(file, _)| *file == name).copied()
}

/// Whether the browser has this version of the page already.
fn has_tag(headers: &HeaderMap, tag: &[u8]) -> bool {
    let tags = headers.get_all(IF_NONE_MATCH).iter().flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    // A proxy that compresses answers makes tags weak.
    let mut tags = tags.map(|tag| tag.trim_ascii()).map(|tag| tag.strip_prefix(b"W/").unwrap_or(tag));
    tags.any(|one| one == tag || one == b"*")
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Headers of every file. No script or style but those of the page's own origin runs in it, nothing is sent elsewhere, and no
/// other page can frame it, open it as its own window, or load parts of it.
const PAGE_HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (X_FRAME_OPTIONS, "DENY"),
];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' blob: data:; font-src 'self'; media-src blob:; frame-src blob:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Where the files are whose names change with their contents.
const ASSETS: &str = "/assets/";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const GONE: &str = "this version of the console has no such file: reload the page\n";

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn ask(method: Method, path: &str, tag: Option<&str>) -> Page {
        let request = Request::builder().method(method).uri(path);
        let request = tag.into_iter().fold(request, |request, tag| request.header(IF_NONE_MATCH, tag));
        answer(&request.body(()).expect("a request").into_parts().0)
    }

    #[test]
    fn every_file_has_a_type_that_browsers_take() {
        assert!(FILES.iter().any(|(name, _)| *name == "index.html"), "there is a page");
        for (name, bytes) in FILES {
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
            assert!(!bytes.is_empty(), "{name}");
            let page = ask(Method::GET, &format!("/{name}"), None);
            assert_eq!((page.status().as_u16(), page.body().bytes()), (200, bytes.len() as u64), "{name}");
        }
    }

    #[test]
    fn the_page_has_nothing_that_its_own_policy_forbids() {
        let (_, index) = find("/").expect("a page");
        let text = std::str::from_utf8(index).expect("text");
        for (at, _) in text.match_indices("<script") {
            let tag = &text[at..at + text[at..].find('>').expect("the end of a tag")];
            assert!(tag.contains(" src=\"/") || tag.contains(" src=\"./"), "{tag}");
        }
        for forbidden in ["<style", " style=", " onload=", " onclick=", "javascript:", "http://", "https://"] {
            assert!(!text.contains(forbidden), "{forbidden}");
        }
        let words = text.split(['"', '\'']).map(|word| word.trim_start_matches('.'));
        for path in words.filter(|word| word.starts_with(ASSETS) || *word == "/favicon.svg") {
            assert!(find(path).is_some(), "{path} is not among the files");
        }
    }

    #[test]
    fn a_browser_asks_for_the_page_again_and_for_other_files_once() {
        let page = ask(Method::GET, "/", None);
        let tag = page.headers()[ETAG].to_str().expect("a tag").to_owned();
        assert_eq!(page.headers()[CACHE_CONTROL], "no-cache");
        for (tag, status) in [
            (tag.clone(), 304),
            (format!("W/{tag}"), 304),
            (format!("\"x\", {tag}"), 304),
            ("*".to_owned(), 304),
            ("\"x\"".to_owned(), 200),
            (tag.replace('"', ""), 200),
        ] {
            let page = ask(Method::GET, "/", Some(&tag));
            assert_eq!((page.status().as_u16(), page.body().bytes() == 0), (status, status == 304), "{tag}");
            assert_eq!(page.headers()[CONTENT_SECURITY_POLICY], POLICY, "{tag}");
        }
        let page = ask(Method::HEAD, "/", None);
        assert_eq!((page.status().as_u16(), page.body().bytes()), (200, 0));
        assert_eq!(ask(Method::POST, "/", None).status(), 405);
        let gone = ask(Method::GET, "/assets/of-yesterday.js", None);
        assert_eq!(
            (gone.status().as_u16(), &gone.headers()[CACHE_CONTROL]),
            (404, &HeaderValue::from_static("no-store"))
        );
        assert!(is_file("/assets/x") && !is_file("/none") && !is_file("/assets") && !is_file("//index.html"));
    }
}
