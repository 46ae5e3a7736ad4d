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
 * What `open` answers for each item, in their order. Of the next `ahead` items, the first piece is read already. Each
 * answer is to be read to its end before the next one is asked for; a failure comes where its piece would come.
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
  // Its failure is told to who comes so far.
  first.catch(() => undefined);
  return { first, rest };
}

async function* continued<T>({ first, rest }: Begun<T>): AsyncGenerator<T> {
  const piece = await first;
  if (piece.done === true) return;
  yield piece.value;
  yield* rest;
}

/** What `work` answers, or `undefined` when it has not within `timeoutMs`; then it goes on unheard, its failure too. */
export function withinTime<T>(clock: Clock, work: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(Math.max(0, timeoutMs), () => resolve(undefined));
    work.then(resolve, reject).finally(cancel);
  });
}
