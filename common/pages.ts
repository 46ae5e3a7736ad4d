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
export function lazyPages<T>(open: Open<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => new LazyIterator(open) };
}

/** A source that is at hand is returned as it is: a promise would cost as much as a short read. */
type Open<T> = () => AsyncIterable<T> | Promise<AsyncIterable<T>>;

/** The one page that `load` makes, if it has rows. */
export function onePage<T>(load: () => Promise<readonly T[]>): AsyncIterable<readonly T[]> {
  return { [Symbol.asyncIterator]: () => new OnePage(load) };
}

class OnePage<T> implements AsyncIterator<readonly T[]> {
  #load: (() => Promise<readonly T[]>) | undefined;

  constructor(load: () => Promise<readonly T[]>) {
    this.#load = load;
  }

  async next(): Promise<IteratorResult<readonly T[]>> {
    const load = this.#load;
    this.#load = undefined;
    const page = load && (await load());
    return page && page.length > 0 ? { done: false, value: page } : { done: true, value: undefined };
  }

  return(): Promise<IteratorResult<readonly T[]>> {
    this.#load = undefined;
    return Promise.resolve({ done: true, value: undefined });
  }
}

class LazyIterator<T> implements AsyncIterator<T> {
  readonly #open: Open<T>;
  #pages: AsyncIterator<T> | undefined;
  #isOver = false;

  constructor(open: Open<T>) {
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

  #first(): Promise<IteratorResult<T>> {
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    try {
      const opened = this.#open();
      return opened instanceof Promise ? opened.then((pages) => this.#begin(pages)) : this.#begin(opened);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  #begin(pages: AsyncIterable<T>): Promise<IteratorResult<T>> {
    this.#pages = pages[Symbol.asyncIterator]();
    return this.#pages.next();
  }
}
