import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/clock.ts";
import { TenantQueue } from "./queue.ts";

interface Item {
  readonly tenant: string;
  readonly number: number;
}

const LIMITS = { tenantTasks: 4, tasks: 9 };

/** The same promise in the plainest words: tenants in the order of their turns, each with its tasks in their order. */
class PlainQueue {
  readonly rotation: { readonly tenant: string; readonly items: Item[] }[] = [];

  all(): readonly Item[] {
    return this.rotation.flatMap(({ items }) => items);
  }

  add(item: Item): string | undefined {
    const turn = this.rotation.find(({ tenant }) => tenant === item.tenant);
    if ((turn?.items.length ?? 0) >= LIMITS.tenantTasks) return "WORKER_QUEUE_TENANT_MAX_TASKS";
    if (this.all().length >= LIMITS.tasks) return "WORKER_QUEUE_MAX_TASKS";
    if (turn) turn.items.push(item);
    else this.rotation.push({ tenant: item.tenant, items: [item] });
    return undefined;
  }

  putBack(item: Item): void {
    const at = this.rotation.findIndex(({ tenant }) => tenant === item.tenant);
    const [turn] = at < 0 ? [] : this.rotation.splice(at, 1);
    this.rotation.unshift({ tenant: item.tenant, items: [item, ...(turn?.items ?? [])] });
  }

  take(): Item | undefined {
    const turn = this.rotation.shift();
    const item = turn?.items.shift();
    if (turn && turn.items.length > 0) this.rotation.push(turn);
    return item;
  }

  delete(item: Item): void {
    const at = this.rotation.findIndex(({ items }) => items.includes(item));
    const items = this.rotation[at]?.items;
    items?.splice(items.indexOf(item), 1);
    if (items?.length === 0) this.rotation.splice(at, 1);
  }
}

function limitOf(add: () => void): string | undefined {
  try {
    add();
    return undefined;
  } catch (error) {
    return (error as { details: { limit: string } }).details.limit;
  }
}

test.each([1, 2, 3])("10,000 steps leave the queue as the plain one (seed %i)", (seed) => {
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.next() * from.length)] as T;
  const queue = new TenantQueue<Item>(LIMITS);
  const plain = new PlainQueue();
  const taken: Item[] = [];
  const steps: Record<string, (number: number) => void> = {
    add: (number) => {
      const item = { tenant: pick(["a", "b", "c", "d"]), number };
      expect(limitOf(() => queue.add(item))).toBe(plain.add(item));
    },
    take: () => {
      const item = queue.take();
      expect(item).toBe(plain.take());
      if (item) taken.push(item);
    },
    delete: () => {
      const item = pick([...plain.all(), { tenant: "a", number: -1 }]);
      queue.delete(item);
      plain.delete(item);
    },
    putBack: () => {
      const item = taken.pop();
      if (!item) return;
      queue.putBack(item);
      plain.putBack(item);
    },
  };
  for (let number = 0; number < 10_000; number++) {
    steps[pick(["add", "add", "add", "take", "take", "delete", "putBack"])]?.(number);
    expect(queue.size).toBe(plain.all().length);
  }
  for (let item = plain.take(); item; item = plain.take()) expect(queue.take()).toBe(item);
  expect([queue.take(), queue.size]).toEqual([undefined, 0]);
});
