import type { CommandListener } from "../types.ts";

/** Listeners for the reports of hosts about commands, by `keyOf`. */
export class CommandListeners {
  readonly #listeners = new Map<string, Set<CommandListener>>();

  has(key: string): boolean {
    return this.#listeners.has(key);
  }

  /** Returns a copy: a listener may be removed while it is called. */
  of(key: string): readonly CommandListener[] {
    return [...(this.#listeners.get(key) ?? [])];
  }

  add(key: string, listener: CommandListener): void {
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
  }

  remove(key: string, listener: CommandListener): void {
    const listeners = this.#listeners.get(key);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#listeners.delete(key);
  }
}

export function keyOf(tenant: string, host: string, commandId: string): string {
  return `${tenant}/${host}/${commandId}`;
}
