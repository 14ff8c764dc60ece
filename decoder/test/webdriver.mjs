/** Headless Chromium, controlled by chromedriver over HTTP on a loopback port. */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
];

/** How long the browser may take to start, to answer, and to show something. */
const PATIENCE_MS = 30_000;

/** The key under which WebDriver returns an element. */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

/** Keys by their code points in WebDriver. */
export const KEYS = { control: "\ue009", tab: "\ue004", delete: "\ue017" };

export class Browser {
    /** Starts chromedriver on a free port, and Chromium with its own profile. */
    static async start() {
        const browser = new Browser();
        browser.files = mkdtempSync(join(tmpdir(), "chromium-"));
        const env = { ...process.env, TMPDIR: browser.files };
        browser.driver = spawn("chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "inherit"], env });
        // The browser must also be killed when the tests end early. Without a handler, a signal would end this process without an
        // "exit" event.
        process.on("exit", () => browser.kill());
        for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
        try {
            browser.url = `http://127.0.0.1:${await port(browser.driver)}`;
            const alwaysMatch = {
                browserName: "chrome",
                "goog:chromeOptions": { args: [...FLAGS, `--user-data-dir=${join(browser.files, "profile")}`] },
                "goog:loggingPrefs": { browser: "ALL", performance: "ALL" },
            };
            const session = await browser.send("POST", "/session", { capabilities: { alwaysMatch } });
            browser.url += `/session/${session.sessionId}`;
            browser.process = session.capabilities["goog:processID"];
            return browser;
        } catch (error) {
            await browser.stop();
            throw error;
        }
    }

    /** Ends the browser and chromedriver, and removes their files. */
    async stop() {
        if (this.url?.includes("/session/")) await this.send("DELETE", "").catch(() => {});
        this.kill();
        // Chromium still writes files while it ends.
        for (let attempt = 0; attempt < 20; attempt++) {
            try {
                return rmSync(this.files, { recursive: true, force: true });
            } catch {
                await sleep(100);
            }
        }
    }

    kill() {
        for (const pid of [this.process, this.driver.pid]) {
            try {
                if (pid) process.kill(pid, "SIGKILL");
            } catch {
                // The process has already ended.
            }
        }
    }

    async send(method, path, body) {
        const response = await fetch(this.url + path, {
            method,
            body: body && JSON.stringify(body),
            headers: { "Content-Type": "application/json" },
            signal: AbortSignal.timeout(PATIENCE_MS),
        });
        const { value } = await response.json();
        if (!response.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`);
        return value;
    }

    go(url) {
        return this.send("POST", "/url", { url });
    }

    /** Runs the body of a function in the page, and returns what it returns or promises. */
    run(script, ...args) {
        return this.send("POST", "/execute/sync", { script, args });
    }

    async find(selector) {
        const found = await this.send("POST", "/element", { using: "css selector", value: selector });
        return found[ELEMENT];
    }

    async click(selector) {
        await this.send("POST", `/element/${await this.find(selector)}/click`, {});
    }

    /** Replaces the content of an input with a text at once, as if the text were pasted. */
    async paste(selector, text) {
        await this.run("const input = document.querySelector(arguments[0]); input.focus(); input.select();", selector);
        await this.command("Input.insertText", { text });
    }

    /** Replaces the content of an input with a text by typing the text key by key. */
    async type(selector, text) {
        const keys = `${KEYS.control}a${KEYS.control}${KEYS.delete}${text}`;
        await this.send("POST", `/element/${await this.find(selector)}/value`, { text: keys });
    }

    /** Presses a key several times, wherever the focus is. */
    async press(value, times) {
        const actions = Array(times).fill([{ type: "keyDown", value }, { type: "keyUp", value }]).flat();
        await this.send("POST", "/actions", { actions: [{ type: "key", id: "keyboard", actions }] });
    }

    /** Selects an option of a selection by clicking it. */
    async select(selector, value) {
        await this.click(`${selector} option[value="${value}"]`);
    }

    async text(selector) {
        return this.send("GET", `/element/${await this.find(selector)}/text`);
    }

    /** Waits until a text of the page matches. */
    async waitFor(selector, pattern) {
        const end = Date.now() + PATIENCE_MS;
        for (;;) {
            const text = await this.text(selector);
            if (pattern.test(text)) return text;
            if (Date.now() > end) throw new Error(`${selector} shows "${text}", which does not match ${pattern}`);
            await sleep(50);
        }
    }

    /** Sends a command of Chromium's own protocol. */
    command(cmd, params) {
        return this.send("POST", "/goog/cdp/execute", { cmd, params });
    }

    /** Returns what was logged since the last call. `type` is "browser" or "performance". */
    log(type) {
        return this.send("POST", "/se/log", { type });
    }
}

function port(driver) {
    return new Promise((resolve, reject) => {
        let printed = "";
        const failed = () => reject(new Error(`chromedriver does not start: ${printed}`));
        const timer = setTimeout(failed, PATIENCE_MS);
        driver.on("error", reject);
        driver.on("exit", failed);
        driver.stdout.on("data", (data) => {
            printed += data;
            const found = /started successfully on port (\d+)/.exec(printed);
            if (!found) return;
            clearTimeout(timer);
            driver.off("exit", failed);
            resolve(found[1]);
        });
    });
}
