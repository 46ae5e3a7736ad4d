import type { Clock } from "./time.ts";

/** The answers in the order of `items`, with at most `limit` pieces of work at a time. The first failure fails all, and nothing is begun after it. */
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

/**
 * Yields each item with the pieces that `open` gives of it, in the order of `items`. It has begun to read the first
 * pieces of the next `ahead` items by then. The caller reads the pieces of an item before it asks for the next item. A
 * failure is thrown where its piece would come.
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
      const source = begun.shift();
      if (source) yield [item, continued(source)];
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
  // `continued` throws its failure, if its turn comes.
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

/** The result of `work`, or `undefined` when there is none within `timeoutMs`; a later result or failure is ignored. */
export function withinTime<T>(clock: Clock, work: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(Math.max(0, timeoutMs), () => resolve(undefined));
    work.then(resolve, reject).finally(cancel);
  });
}
