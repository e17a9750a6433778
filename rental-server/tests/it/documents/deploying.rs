//! The page on deploying shows the files of `deploy/`.

use super::read;

#[test]
fn the_configuration_of_each_proxy_is_shown_as_it_is_checked() {
    let page = read("docs/deploy.md");
    for (language, file) in
        [("nginx", "nginx.conf"), ("haproxy", "haproxy.cfg"), ("caddyfile", "Caddyfile"), ("apache", "apache.conf")]
    {
        let (_, rest) =
            page.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("no block of {language}"));
        let (shown, _) = rest.split_once("```").expect("an end");
        assert!(shown == read(&format!("deploy/proxies/{file}")), "docs/deploy.md shows another deploy/proxies/{file}");
    }
}
