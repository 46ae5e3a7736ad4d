import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { type Queued, ShareQueue } from "./queue.ts";

interface Item extends Queued {
  readonly tenant: string;
  readonly number: number;
}

const SHARES = [{ tasks: 4, tasksLimit: "TENANT_MAX" }] as const;
const LIMITS = { tasks: 9, tasksLimit: "ALL_MAX", shares: SHARES } as const;

/** A simple reference model: tenants in the order of their turns, each with its tasks in order. */
class PlainQueue {
  readonly rotation: { readonly tenant: string; readonly items: Item[] }[] = [];

  all(): readonly Item[] {
    return this.rotation.flatMap(({ items }) => items);
  }

  add(item: Item): string | undefined {
    const turn = this.rotation.find(({ tenant }) => tenant === item.tenant);
    if ((turn?.items.length ?? 0) >= SHARES[0].tasks) return "TENANT_MAX";
    if (this.all().length >= LIMITS.tasks) return "ALL_MAX";
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
  const queue = new ShareQueue<Item>(LIMITS);
  const plain = new PlainQueue();
  const taken: Item[] = [];
  const steps: Record<string, (number: number) => void> = {
    add: (number) => {
      const tenant = pick(["a", "b", "c", "d"]);
      const item = { tenant, path: [tenant], number };
      expect(limitOf(() => queue.add(item))).toBe(plain.add(item));
    },
    take: () => {
      const item = queue.take();
      expect(item).toBe(plain.take());
      if (item) taken.push(item);
    },
    delete: () => {
      const item = pick([...plain.all(), { tenant: "a", path: ["a"], number: -1 }]);
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

const task = (...path: readonly string[]): Queued => ({ path });

test("tenants take turns, within each its kinds, within each kind its users", () => {
  const queue = new ShareQueue<Queued>({ tasks: 99, tasksLimit: "ALL_MAX", shares: [] });
  const [scripts, triggers] = ["scripts", "triggers"];
  const flood = Array.from({ length: 4 }, () => task("a", scripts, "anna"));
  const [ben, trigger, other] = [task("a", scripts, "ben"), task("a", triggers, "anna"), task("b", scripts, "eve")];
  for (const one of [...flood, ben, trigger, other]) queue.add(one);
  const taken = Array.from({ length: 7 }, () => queue.take());
  expect(taken).toEqual([flood[0], other, trigger, ben, flood[1], flood[2], flood[3]]);
  expect([queue.size, queue.take()]).toEqual([0, undefined]);
});

test("each level has its bound, and a full one refuses nobody else", () => {
  const queue = new ShareQueue<Queued>({
    tasks: 6,
    tasksLimit: "ALL_MAX",
    shares: [
      { tasks: 5, tasksLimit: "TENANT_MAX" },
      { tasks: 3, tasksLimit: "KIND_MAX" },
      { tasks: 2, tasksLimit: "USER_MAX" },
    ],
  });
  const add = (...path: readonly string[]): string | undefined => limitOf(() => queue.add(task(...path)));
  expect([add("a", "scripts", "anna"), add("a", "scripts", "anna")]).toEqual([undefined, undefined]);
  expect(add("a", "scripts", "anna")).toBe("USER_MAX");
  expect([add("a", "scripts", "ben"), add("a", "scripts", "ben")]).toEqual([undefined, "KIND_MAX"]);
  expect([add("a", "rules", "anna"), add("a", "rules", "anna")]).toEqual([undefined, undefined]);
  expect(add("a", "triggers", "anna")).toBe("TENANT_MAX");
  expect([add("b", "scripts", "eve"), add("b", "scripts", "eve")]).toEqual([undefined, "ALL_MAX"]);
  expect(queue.size).toBe(6);
});

test("what may not begin yet is passed over, and keeps its place", () => {
  const queue = new ShareQueue<Queued>({ tasks: 9, tasksLimit: "ALL_MAX", shares: [] });
  const [first, second] = [task("a", "scripts"), task("b", "scripts")];
  for (const one of [first, second]) queue.add(one);
  expect(queue.take(([tenant]) => tenant !== "a")).toBe(second);
  expect(queue.take(() => false)).toBeUndefined();
  expect(queue.take()).toBe(first);
});

test("a task that is put back is the next one of all", () => {
  const queue = new ShareQueue<Queued>({ tasks: 1, tasksLimit: "ALL_MAX", shares: [] });
  const [back, other] = [task("a", "scripts", "anna"), task("b", "scripts", "eve")];
  queue.add(other);
  queue.putBack(back);
  expect([queue.take(), queue.take()]).toEqual([back, other]);
});
