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

/** What `work` answers, or `undefined` when it has not within `timeoutMs`; then it goes on unheard, its failure too. */
export function withinTime<T>(clock: Clock, work: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(Math.max(0, timeoutMs), () => resolve(undefined));
    work.then(resolve, reject).finally(cancel);
  });
}
