import { AppError } from "../../common/errors.ts";

export interface QueueLimits {
  readonly tenantTasks: number;
  readonly tasks: number;
}

/** Tasks that wait: each tenant's in their order, the tenants in rotation. */
export class TenantQueue<T extends { readonly tenant: string }> {
  readonly #limits: QueueLimits;
  /** By tenant, in the order of their turns; no tenant without a task. */
  #waiting = new Map<string, Set<T>>();
  #size = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** `AppError("limited")` names the bound that is reached. */
  add(task: T): void {
    const ofTenant = this.#waiting.get(task.tenant) ?? new Set();
    const { tenantTasks, tasks } = this.#limits;
    if (ofTenant.size >= tenantTasks) throw full("WORKER_QUEUE_TENANT_MAX_TASKS", tenantTasks);
    if (this.#size >= tasks) throw full("WORKER_QUEUE_MAX_TASKS", tasks);
    this.#waiting.set(task.tenant, ofTenant.add(task));
    this.#size += 1;
  }

  /** A task that was taken already: it is the next one, whatever the bounds. */
  putBack(task: T): void {
    const { tenant } = task;
    const ofTenant = new Set([task, ...(this.#waiting.get(tenant) ?? [])]);
    this.#waiting.delete(tenant);
    this.#waiting = new Map([[tenant, ofTenant], ...this.#waiting]);
    this.#size += 1;
  }

  /** The next task of the next tenant that may have one. */
  take(may: (tenant: string) => boolean = () => true): T | undefined {
    for (const [tenant, ofTenant] of this.#waiting) {
      const [task] = ofTenant;
      if (!task || !may(tenant)) continue;
      this.delete(task);
      // At the end of the rotation.
      if (this.#waiting.delete(tenant)) this.#waiting.set(tenant, ofTenant);
      return task;
    }
    return undefined;
  }

  delete(task: T): void {
    const ofTenant = this.#waiting.get(task.tenant);
    if (!ofTenant?.delete(task)) return;
    this.#size -= 1;
    if (ofTenant.size === 0) this.#waiting.delete(task.tenant);
  }
}

function full(limit: string, tasks: number): AppError {
  return new AppError("limited", `${tasks} tasks wait for a thread: come back later.`, { details: { limit } });
}
