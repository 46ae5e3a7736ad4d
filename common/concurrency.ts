import type { Clock } from "./time.ts";

/**
 * Runs `work` for each item, at most `limit` at a time. Returns the results in the order of `items`. The first failure
 * fails the call, and no further work begins.
 */
export async function mapLimited<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const answers = new Array<R>(items.length);
  let next = 0;
  async function lane(): Promise<void> {
    try {
      for (let index = next++; index < items.length; index = next++)
        answers[index] = await work(items[index] as T, index);
    } catch (error) {
      next = items.length;
      throw error;
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
  return answers;
}

/** Yields the items of the source. By then it has begun to read the next one. Ends when the source has ended. */
export async function* oneAhead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = source.next();
  try {
    for (let item = await next; item.done !== true; item = await next) {
      next = source.next();
      // It is thrown when the item is read.
      next.catch(() => undefined);
      yield item.value;
    }
  } finally {
    await source.return(undefined);
  }
}

/**
 * Yields each item with the pieces that `open` yields for it, in the order of `items`. By then it has begun to read the
 * first pieces of the next `ahead` items. The caller must read the pieces of an item before it asks for the next item.
 * A failure is thrown at the position of its piece.
 */
export async function* readAhead<I, T>(
  items: readonly I[],
  ahead: number,
  open: (item: I) => AsyncGenerator<T>,
): AsyncGenerator<readonly [I, AsyncIterable<T>]> {
  const begun: Begun<T>[] = [];
  try {
    for (const [at, item] of items.entries()) {
      for (const next of items.slice(at + begun.length, at + 1 + ahead)) begun.push(begin(open(next)));
      const [source] = begun;
      if (source) yield [item, continued(source)];
      // Its reader may not have begun.
      await begun.shift()?.rest.return(undefined);
    }
  } finally {
    await Promise.all(begun.map(({ rest }) => rest.return(undefined)));
  }
}

interface Begun<T> {
  readonly first: Promise<IteratorResult<T, unknown>>;
  readonly rest: AsyncGenerator<T>;
}

function begin<T>(rest: AsyncGenerator<T>): Begun<T> {
  const first = rest.next();
  // `continued` throws this failure if it reads this source.
  first.catch(() => undefined);
  return { first, rest };
}

async function* continued<T>({ first, rest }: Begun<T>): AsyncGenerator<T> {
  try {
    const piece = await first;
    if (piece.done === true) return;
    yield piece.value;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}

/** The result of `work`; `undefined` if it takes longer than `timeoutMs`. A later result or failure is ignored. */
export function withinTime<T>(clock: Clock, work: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(Math.max(0, timeoutMs), () => resolve(undefined));
    work.then(resolve, reject).finally(cancel);
  });
}
