/** Pages of which it takes a while to know where they come from; what `open` answers is handed on as it is, without a step of its own. */
export function opened<T>(open: () => Promise<AsyncIterable<T>>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => new OpenedIterator(open) };
}

class OpenedIterator<T> implements AsyncIterator<T> {
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
