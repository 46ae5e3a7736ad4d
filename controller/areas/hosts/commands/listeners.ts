import type { CommandListener } from "../types.ts";

/** Who is told what hosts say of commands, by `keyOf`. */
export class CommandListeners {
  readonly #listeners = new Map<string, Set<CommandListener>>();

  has(key: string): boolean {
    return this.#listeners.has(key);
  }

  /** Those there are now: a listener may leave while it is told. */
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
