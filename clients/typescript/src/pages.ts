/** Lists: page by page, or object by object. */

/** A page as the API sends it. */
export interface Page<T> {
  object: "list";
  data: T[];
  has_more: boolean;
  next_cursor: string | null;
}

/**
 * A list. Nothing is requested before it is read. `for await` gives every object and gets the next page when it needs
 * it; leaving the loop ends the walk.
 */
export class List<T> implements AsyncIterable<T> {
  readonly #get: (cursor: string | undefined) => Promise<Page<T>>;

  constructor(get: (cursor: string | undefined) => Promise<Page<T>>) {
    this.#get = get;
  }

  /** The first page only. */
  firstPage(): Promise<Page<T>> {
    return this.#get(undefined);
  }

  /** Page by page, to the end. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let cursor: string | undefined;
    for (;;) {
      const page = await this.#get(cursor);
      yield page;
      if (!page.has_more || page.next_cursor === null || page.next_cursor === cursor) return;
      cursor = page.next_cursor;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }

  /** The first `most` objects as an array. */
  async toArray(most: number): Promise<T[]> {
    const all: T[] = [];
    if (most <= 0) return all;
    for await (const one of this) {
      all.push(one);
      if (all.length >= most) break;
    }
    return all;
  }
}
