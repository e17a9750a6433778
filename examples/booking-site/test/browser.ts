/** A headless Chromium, driven by its own protocol over a pipe. */

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

export const CHROMIUM = ["chromium", "chromium-browser", "google-chrome"].find(
  (name) => spawnSync(name, ["--version"]).status === 0,
);

interface Message {
  id?: number;
  method?: string;
  sessionId?: string;
  params?: { entry?: { text: string }; exceptionDetails?: { text: string } };
  result?: Record<string, unknown>;
  error?: { message: string };
}

export class Browser {
  readonly #process: ChildProcess;
  readonly #profile = mkdtempSync(join(tmpdir(), "booking-site-"));
  readonly #waiting = new Map<number, (message: Message) => void>();
  #session: string | undefined;
  #last = 0;
  /** What the browser complained about, such as a style that the Content-Security-Policy forbids. */
  readonly complaints: string[] = [];

  private constructor(program: string) {
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"];
    this.#process = spawn(program, [...flags, `--user-data-dir=${this.#profile}`], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    let text = "";
    (this.#process.stdio[4] as Readable).setEncoding("utf8").on("data", (part: string) => {
      const messages = (text + part).split("\0");
      text = messages.pop() ?? "";
      for (const message of messages) this.#take(JSON.parse(message) as Message);
    });
  }

  static async start(program: string): Promise<Browser> {
    const browser = new Browser(program);
    const { targetId } = await browser.#send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await browser.#send("Target.attachToTarget", { targetId, flatten: true });
    browser.#session = sessionId as string;
    for (const domain of ["Page", "Log", "Runtime"]) await browser.#send(`${domain}.enable`);
    return browser;
  }

  async size(width: number, height: number): Promise<void> {
    await this.#send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
  }

  async open(url: string): Promise<void> {
    await this.#send("Page.navigate", { url });
    await this.until("document.readyState === 'complete' && location.href !== 'about:blank'");
  }

  /** The value of an expression in the page. */
  async value(expression: string): Promise<unknown> {
    const { result } = await this.#send("Runtime.evaluate", { expression, returnByValue: true });
    return (result as { value?: unknown }).value;
  }

  async until(expression: string): Promise<void> {
    for (const end = Date.now() + 20_000; ; ) {
      // While a page is being replaced there is nothing to evaluate in.
      if (await this.value(expression).catch(() => false)) return;
      if (Date.now() > end) throw new Error(`not true: ${expression}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  async picture(file: string): Promise<void> {
    const { data } = await this.#send("Page.captureScreenshot", { format: "png", captureBeyondViewport: true });
    writeFileSync(file, Buffer.from(data as string, "base64"));
  }

  async close(): Promise<void> {
    const ended = new Promise((done) => this.#process.once("exit", done));
    await this.#send("Browser.close").catch(() => undefined);
    await ended;
    rmSync(this.#profile, { recursive: true, force: true });
  }

  #send(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#last;
    const session = this.#session && !method.startsWith("Browser.") ? { sessionId: this.#session } : {};
    (this.#process.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...session })}\0`);
    return new Promise((done, fail) => {
      this.#waiting.set(id, (message) =>
        message.error ? fail(new Error(`${method}: ${message.error.message}`)) : done(message.result ?? {}),
      );
    });
  }

  #take(message: Message): void {
    if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
    else if (message.method === "Log.entryAdded") this.complaints.push(message.params?.entry?.text ?? "");
    else if (message.method === "Runtime.exceptionThrown") {
      this.complaints.push(message.params?.exceptionDetails?.text ?? "");
    }
  }
}
