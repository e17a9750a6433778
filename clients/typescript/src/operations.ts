/**
 * What operations look like to their callers. The types come from the OpenAPI document (`schema.ts`, generated): a path
 * or a method that it does not have does not compile.
 */

import { fillPath, type Http, type RequestOptions } from "./http.js";
import { List, type Page } from "./pages.js";
import type { paths } from "./schema.js";

type Paths = keyof paths;
type Method = "get" | "post" | "patch" | "delete";

/** The paths that have a method. */
export type With<M extends Method> = { [P in Paths]: paths[P][M] extends object ? P : never }[Paths];

type Content<T> = T extends { content: { "application/json": infer C } } ? C : never;
type Body<P extends Paths, M extends Method> = paths[P][M] extends { requestBody?: infer R }
  ? Content<NonNullable<R>>
  : never;
type Query<P extends Paths> = paths[P]["get"] extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;

/** What an operation answers. */
export type Answer<P extends Paths, M extends Method> = paths[P][M] extends { responses: { 200: infer R } }
  ? Content<R>
  : never;

/** The paths whose GET answers with a page. */
export type Lists = {
  [P in With<"get">]: Answer<P, "get"> extends { data: unknown[]; has_more: boolean } ? P : never;
}[With<"get">];

/** What a list consists of. */
export type Item<P extends Paths> = Answer<P, "get"> extends { data: (infer T)[] } ? T : never;

/** The path of one object of a collection. */
type One<P extends Paths> = Extract<`${P}/{id}`, Paths>;

/** The filters of a list; they may be left out when none is required. */
export type Filters<P extends Paths> =
  object extends Query<P> ? [query?: Query<P>, options?: RequestOptions] : [query: Query<P>, options?: RequestOptions];

export interface Reads<P extends Paths> {
  /** Pages of the list, or its objects with `for await`. */
  list(...filters: Filters<P>): List<Item<P>>;
  /** One object. `NotFoundError` when there is none for this key. */
  get(id: string, options?: RequestOptions): Promise<Answer<One<P>, "get">>;
  /** The object if it is no longer the revision `etag`, else `undefined`. */
  getIfChanged(id: string, etag: string, options?: RequestOptions): Promise<Answer<One<P>, "get"> | undefined>;
}

export interface Creates<P extends Paths> {
  /** Takes effect once, however often it has to be sent. */
  create(body: Body<P, "post">, options?: RequestOptions): Promise<Answer<P, "post">>;
}

export interface Updates<P extends Paths> {
  /** Absent fields stay as they are; `null` clears a field. With `ifMatch` it never overwrites a change of others. */
  update(id: string, body: Body<One<P>, "patch">, options?: RequestOptions): Promise<Answer<One<P>, "patch">>;
}

export function list<P extends Lists>(http: Http, path: P): (...filters: Filters<P>) => List<Item<P>> {
  return (...[query, options]) =>
    new List(async (cursor) => {
      const more = cursor === undefined ? {} : { starting_after: cursor };
      return (await http.send("GET", path, { ...options, query: { ...query, ...more } })) as Page<Item<P>>;
    });
}

/** A list that belongs to one object. */
export function listOf<P extends Lists>(http: Http, path: P): (id: string, ...filters: Filters<P>) => List<Item<P>> {
  return (id, ...filters) => list(http, fillPath(path, { id }) as P)(...filters);
}

/** The one object of a path without an id. */
export function single<P extends With<"get">>(
  http: Http,
  path: P,
): (options?: RequestOptions) => Promise<Answer<P, "get">> {
  return async (options) => (await http.send("GET", path, { ...options })) as Answer<P, "get">;
}

/** An operation on one object that needs no fields. */
export function of<P extends With<M>, M extends Method>(
  http: Http,
  path: P,
  method: M,
): (id: string, options?: RequestOptions) => Promise<Answer<P, M>> {
  const body = method === "post" ? { body: {} } : {};
  return async (id, options) =>
    (await http.send(method.toUpperCase(), fillPath(path, { id }), { ...options, ...body })) as Answer<P, M>;
}

export function reads<P extends Lists>(http: Http, path: P): Reads<P> {
  const one = (id: string) => fillPath(`${path}/{id}`, { id });
  return {
    list: list(http, path),
    get: async (id, options) => (await http.send("GET", one(id), { ...options })) as Answer<One<P>, "get">,
    getIfChanged: (id, etag, options) => http.send("GET", one(id), { ...options, ifNoneMatch: etag }),
  };
}

export function creates<P extends With<"post">>(http: Http, path: P): Creates<P> {
  return {
    create: async (body, options) => (await http.send("POST", path, { ...options, body })) as Answer<P, "post">,
  };
}

export function updates<P extends Paths>(http: Http, path: P): Updates<P> {
  return {
    update: async (id, body, options) =>
      (await http.send("PATCH", fillPath(`${path}/{id}`, { id }), { ...options, body })) as Answer<One<P>, "patch">,
  };
}
