//! A real browser, controlled over WebDriver.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The key under which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long a page may take to come to what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Browser {
    driver: Child,
    session: String,
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    _profile: tempfile::TempDir,
}

/// Whether there is a browser; where there is none, says so.
pub fn there_is_a_browser() -> bool {
    let there = ["chromium", "chromedriver"].iter().all(|program| on_path(program).is_some());
    if !there {
        eprintln!("skipped: there is no chromium with chromedriver on this machine");
    }
    there
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

impl Browser {
    pub fn start(width: u32, height: u32, dark: bool) -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("HOME", profile.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("its output")).lines();
        let port = lines
            .find_map(|line| {
                let line = line.ok()?;
                let port = line.split_once("started successfully on port ")?.1;
                port.trim_end_matches('.').parse::<u16>().ok()
            })
            .expect("chromedriver says its port");
        // It must not block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut args = vec![
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", profile.path().join("profile").display()),
        ];
        if dark {
            args.push("--force-dark-mode".to_owned());
        }
        let mut browser = Self {
            driver,
            session: format!("http://127.0.0.1:{port}/session"),
            client: reqwest::Client::new(),
            runtime,
            _profile: profile,
        };
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = browser.post("", &wanted);
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        browser.session = format!("{}/{id}", browser.session);
        // Headless windows are sometimes as large as they like.
        let narrow = json!({"cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}});
        browser.post("/goog/cdp/execute", &narrow);
        browser
    }

    fn send(&self, request: reqwest::RequestBuilder) -> Result<Value, String> {
        let answer: Value = self.runtime.block_on(async {
            let response = request.send().await.map_err(|error| error.to_string())?;
            response.json().await.map_err(|error| error.to_string())
        })?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.session)).json(body);
        self.send(request).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[track_caller]
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// Goes to a page of the viewer and waits until it is there.
    #[track_caller]
    pub fn go(&self, hash: &str) {
        self.script("location.hash = arguments[0]", &[json!(hash)]);
        self.settled();
    }

    /// Waits until the page that was last gone to is there, and not the one before it.
    #[track_caller]
    pub fn settled(&self) {
        self.wait("return document.querySelector('.page')?.dataset.ready === location.hash");
    }

    #[track_caller]
    pub fn script(&self, script: &str, args: &[Value]) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": args}))
    }

    /// Waits until a script gives something true, and gives it.
    #[track_caller]
    pub fn wait(&self, script: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let value = self.script(script, &[]);
            if value != Value::Null && value != json!(false) && value != json!("") {
                return value;
            }
            if Instant::now() > deadline {
                let page = self.script("return document.body.innerText", &[]);
                panic!(
                    "never came: {script}\n{}\n{}",
                    page.as_str().unwrap_or_default(),
                    self.complaints().join("\n")
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn element(&self, selector: &str) -> String {
        let quoted = json!(selector);
        self.wait(&format!("return document.querySelector({quoted}) !== null"));
        let found = self.post("/element", &json!({"using": "css selector", "value": selector}));
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    #[track_caller]
    pub fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    #[track_caller]
    pub fn write(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.post(&format!("/element/{element}/value"), &json!({"text": text}));
    }

    /// Presses keys one after the other, wherever the focus is. `\u{e007}` is Enter.
    #[track_caller]
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    #[track_caller]
    pub fn text(&self, selector: &str) -> String {
        self.element(selector);
        let found = self.script("return document.querySelector(arguments[0]).innerText", &[json!(selector)]);
        found.as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn count(&self, selector: &str) -> u64 {
        let found = self.script("return document.querySelectorAll(arguments[0]).length", &[json!(selector)]);
        found.as_u64().expect("a number")
    }

    /// Takes the network away.
    #[track_caller]
    pub fn go_offline(&self) {
        let params = json!({"offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0});
        self.post("/goog/cdp/execute", &json!({"cmd": "Network.enable", "params": {}}));
        self.post("/goog/cdp/execute", &json!({"cmd": "Network.emulateNetworkConditions", "params": params}));
    }

    /// Shows the page as on such a medium, in such a colour scheme.
    #[track_caller]
    pub fn emulate(&self, medium: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let params = json!({"media": medium, "features": features});
        self.post("/goog/cdp/execute", &json!({"cmd": "Emulation.setEmulatedMedia", "params": params}));
    }

    /// What the browser wrote to its console: errors, and what its policy forbade.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .filter(|entry| entry["level"] == "SEVERE")
            .map(|entry| entry["message"].to_string())
            .filter(|message| !message.contains("favicon"))
            .collect()
    }

    /// Takes a picture, if PRACTICUM_TEST_SCREENSHOTS says where to.
    #[track_caller]
    pub fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("PRACTICUM_TEST_SCREENSHOTS") else { return };
        let request = self.client.get(format!("{}/screenshot", self.session));
        let taken = self.send(request).expect("a picture");
        let path = Path::new(&folder).join(format!("{name}.png"));
        let mut child = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(std::fs::File::create(path).expect("a file"))
            .spawn()
            .expect("base64");
        let mut input = child.stdin.take().expect("its input");
        std::io::Write::write_all(&mut input, taken.as_str().expect("text").as_bytes()).expect("written");
        drop(input);
        child.wait().expect("ends");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.send(self.client.delete(&self.session));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
