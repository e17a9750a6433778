/** What the tests share: the server under test, its document, and servers that misbehave. */

import { readFileSync } from "node:fs";
import {
  createServer,
  request,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { RentalClient, type ClientOptions } from "@rental-platform/client";

export function environment(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

export const BASE = environment("RENTAL_BASE_URL");
export const client = new RentalClient();

/** An operation of the document, as `GET /v1/vehicles/{id}`. */
export interface Operation {
  name: string;
  pattern: RegExp;
}

export function operationsOfTheDocument(): Operation[] {
  const { paths } = JSON.parse(readFileSync(environment("RENTAL_OPENAPI"), "utf8")) as {
    paths: Record<string, object>;
  };
  const own = Object.entries(paths).filter(([path]) => path.startsWith("/v1/"));
  return own.flatMap(([path, item]) =>
    Object.keys(item)
      .filter((method) => ["get", "post", "patch", "put", "delete"].includes(method))
      .map((method) => ({
        name: `${method.toUpperCase()} ${path}`,
        pattern: new RegExp(`^${method.toUpperCase()} ${path.replace(/\{[^}]+\}/g, "[^/]+")}$`),
      })),
  );
}

/** Listens on a free port until the test ends; gives the address. */
export async function serve(test: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await listening(server);
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The address of a port where nobody listens. */
export async function closedPort(): Promise<string> {
  const server = createServer();
  await listening(server);
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

function listening(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
}

/** A client of a server that answers with the next of `answers` each time; the last one stays. */
export async function scripted(test: TestContext, answers: Answer[], options: ClientOptions = {}): Promise<Scripted> {
  const seen: Seen[] = [];
  const baseUrl = await serve(test, async (incoming, response) => {
    const body = await text(incoming);
    seen.push({
      method: incoming.method ?? "",
      url: incoming.url ?? "",
      headers: incoming.headers,
      body,
      at: Date.now(),
    });
    reply(response, answers[Math.min(seen.length, answers.length) - 1]);
  });
  return { client: new RentalClient({ baseUrl, apiKey: "rk_live_test", ...options }), seen };
}

/** `drop` breaks the connection, `hang` never answers. */
export interface Reply {
  status: number;
  body?: object | string;
  headers?: Record<string, string>;
}
export type Answer = Reply | "drop" | "hang";
export interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
  at: number;
}
export interface Scripted {
  client: RentalClient;
  seen: Seen[];
}

function reply(response: ServerResponse, answer: Answer | undefined): void {
  if (answer === "hang") return;
  if (answer === "drop" || answer === undefined) {
    response.destroy();
    return;
  }
  const body = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body ?? {});
  response.writeHead(answer.status, { "Content-Type": "application/json", ...answer.headers }).end(body);
}

export function problem(status: number, type: string, code: string, more: object = {}): Reply {
  return { status, body: { error: { type, code, message: `${code}.`, request_id: "req_1", ...more } } };
}

async function text(incoming: IncomingMessage): Promise<string> {
  let all = "";
  for await (const part of incoming.setEncoding("utf8")) all += part;
  return all;
}

/**
 * A proxy in front of the server under test that carries out every request. Of the first `drops` writes it throws the
 * answer away and breaks the connection.
 */
export async function droppingProxy(
  test: TestContext,
  drops: number,
): Promise<{ client: RentalClient; forwarded: Seen[] }> {
  const forwarded: Seen[] = [];
  let left = drops;
  const baseUrl = await serve(test, async (incoming, response) => {
    const { method = "GET", url = "/", headers } = incoming;
    const body = await text(incoming);
    forwarded.push({ method, url, headers, body, at: Date.now() });
    const drop = method !== "GET" && left > 0;
    if (drop) left -= 1;
    const onward = request(BASE + url, { method, headers: { ...headers, host: new URL(BASE).host } }, (answer) => {
      if (!drop) {
        answer.pipe(response.writeHead(answer.statusCode ?? 502, answer.headers));
        return;
      }
      answer.resume();
      answer.on("end", () => response.destroy());
    });
    onward.on("error", () => response.destroy());
    onward.end(body);
  });
  return { client: new RentalClient({ baseUrl }), forwarded };
}

/** A request with the operator's token. */
export async function operator(method: string, path: string, body?: object): Promise<Record<string, string>> {
  const response = await fetch(`${BASE}/admin/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${environment("RENTAL_ADMIN_TOKEN")}`, "Content-Type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as Record<string, string>;
}
