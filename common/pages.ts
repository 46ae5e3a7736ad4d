/** The pages of all parts, one part after another. A part is not read before all pages of the earlier parts are. */
export function chained<T>(parts: readonly AsyncIterable<T>[]): AsyncIterable<T> {
  const [only] = parts;
  // A single part is returned directly: an additional step for each page costs as much as a short read.
  return only !== undefined && parts.length === 1 ? only : allOf(parts);
}

async function* allOf<T>(parts: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  for (const part of parts) for await (const page of part) yield page;
}

/**
 * Pages of a source that takes time to find: the first `next` calls `open`. The source's iterator is then used
 * directly, without an additional step for each page.
 */
export function lazyPages<T>(open: () => Promise<AsyncIterable<T>>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => new LazyIterator(open) };
}

class LazyIterator<T> implements AsyncIterator<T> {
  readonly #open: () => Promise<AsyncIterable<T>>;
  #pages: AsyncIterator<T> | undefined;
  #isOver = false;

  constructor(open: () => Promise<AsyncIterable<T>>) {
    this.#open = open;
  }

  next(): Promise<IteratorResult<T>> {
    return this.#pages ? this.#pages.next() : this.#first();
  }

  async return(): Promise<IteratorResult<T>> {
    this.#isOver = true;
    await this.#pages?.return?.();
    return { done: true, value: undefined };
  }

  async #first(): Promise<IteratorResult<T>> {
    if (this.#isOver) return { done: true, value: undefined };
    this.#pages = (await this.#open())[Symbol.asyncIterator]();
    return this.#pages.next();
  }
}
