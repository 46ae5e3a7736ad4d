import { AppError } from "../../common/errors.ts";
import { counted } from "../../common/text/counted.ts";

/** A bound on the number of waiting tasks, and its name in errors. */
export interface QueueBound {
  readonly tasks: number;
  readonly tasksLimit: string;
}

export interface QueueLimits extends QueueBound {
  /** Bounds of a tenant, of a part of a tenant, and so on along the path. A level without an entry has no bound. */
  readonly shares: readonly QueueBound[];
}

export interface Queued {
  /** The tenant, then its parts from the larger to the smaller. */
  readonly path: readonly string[];
}

interface Branch<T> {
  size: number;
  readonly tasks: Set<T>;
  /** In the order of their turns. Contains no part without a task. */
  parts: Map<string, Branch<T>>;
}

/** Waiting tasks. Tenants take turns, and so do the parts of each tenant. Tasks of one path keep their order. */
export class ShareQueue<T extends Queued> {
  readonly #limits: QueueLimits;
  readonly #root: Branch<T> = branch();

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#root.size;
  }

  /** Throws `AppError("limited")` that names the bound reached. */
  add(task: T): void {
    let at: Branch<T> | undefined = this.#root;
    for (const [level, name] of task.path.entries()) {
      at = at?.parts.get(name);
      const bound = this.#limits.shares[level];
      if (at && bound && at.size >= bound.tasks) throw full(bound);
    }
    if (this.#root.size >= this.#limits.tasks) throw full(this.#limits);
    this.#enter(task, (parts, name, part) => parts.set(name, part)).tasks.add(task);
  }

  /** Puts back a task that was taken. It becomes the next one, regardless of the bounds. */
  putBack(task: T): void {
    const { tasks } = this.#enter(task, (parts, name, part) => {
      parts.delete(name);
      return new Map([[name, part], ...parts]);
    });
    const others = [...tasks];
    tasks.clear();
    for (const one of [task, ...others]) tasks.add(one);
  }

  /**
   * Returns the next task in turn. `may` returns true if a task of a path may start; it is called for the path and for
   * each of its prefixes.
   */
  take(may: (path: readonly string[]) => boolean = () => true): T | undefined {
    return this.#takeFrom(this.#root, [], may);
  }

  delete(task: T): void {
    const branches = [this.#root];
    for (const name of task.path) {
      const part = branches.at(-1)?.parts.get(name);
      if (!part) return;
      branches.push(part);
    }
    if (!branches.at(-1)?.tasks.delete(task)) return;
    for (const [level, one] of branches.entries()) {
      one.size -= 1;
      if (one.size === 0) branches[level - 1]?.parts.delete(task.path[level - 1] ?? "");
    }
  }

  #takeFrom(from: Branch<T>, path: readonly string[], may: (path: readonly string[]) => boolean): T | undefined {
    const [own] = from.tasks;
    if (own) {
      this.delete(own);
      return own;
    }
    for (const [name, part] of from.parts) {
      const inner = [...path, name];
      const task = may(inner) ? this.#takeFrom(part, inner, may) : undefined;
      if (!task) continue;
      // Moves the part to the end of the rotation.
      if (from.parts.delete(name)) from.parts.set(name, part);
      return task;
    }
    return undefined;
  }

  /** Counts a task along its path. `put` places each part in the rotation. Returns the last branch. */
  #enter(
    { path }: T,
    put: (parts: Map<string, Branch<T>>, name: string, part: Branch<T>) => Map<string, Branch<T>>,
  ): Branch<T> {
    let at = this.#root;
    at.size += 1;
    for (const name of path) {
      const part = at.parts.get(name) ?? branch<T>();
      at.parts = put(at.parts, name, part);
      part.size += 1;
      at = part;
    }
    return at;
  }
}

function branch<T>(): Branch<T> {
  return { size: 0, tasks: new Set(), parts: new Map() };
}

function full({ tasks, tasksLimit }: QueueBound): AppError {
  return new AppError("limited", `${counted(tasks, "task waits", "tasks wait")} for a thread: come back later.`, {
    details: { limit: tasksLimit },
  });
}
