import { lstatSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { AppError } from "../../../common/errors.ts";
import { CLI_CONTEXTS_MAX_BYTES } from "../../../common/limits.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import { isStored, type StoredContext } from "./stored.ts";

/** A controller with a user who is signed in there, by a session or a token. */
export type Context = Readonly<StoredContext>;

export interface Contexts {
  /** Name of the one that commands use. */
  readonly current?: string | undefined;
  readonly contexts: Readonly<Record<string, Context>>;
}

const NONE: Contexts = { contexts: {} };
const NAME = /^[A-Za-z0-9][\w.-]{0,99}$/;

/** The file of contexts, by the environment: of `ODP_CONFIG_DIR`, `XDG_CONFIG_HOME` or the home folder. */
export function contextsPath(env: Readonly<Record<string, string | undefined>>, home: string): string {
  const own = env["ODP_CONFIG_DIR"];
  if (own !== undefined && own !== "") return join(own, "contexts.json");
  const base = env["XDG_CONFIG_HOME"];
  return join(base === undefined || base === "" ? join(home, ".config") : base, "odp", "contexts.json");
}

/** Contexts with their credentials, in a file that only its owner reads. */
export class ContextFile {
  readonly path: string;
  readonly #platform: string;

  constructor(path: string, platform: string) {
    this.path = path;
    this.#platform = platform;
  }

  /**
   * Reads the contexts. A missing file has none. `AppError("denied")` if others may read the file,
   * `AppError("invalid")` if it is damaged.
   */
  async load(): Promise<Contexts> {
    const text = this.#text();
    if (text === undefined) return NONE;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw this.#damaged();
    }
    if (!isStored(value)) throw this.#damaged();
    return { current: value.current, contexts: value.contexts };
  }

  /** `AppError("not_found")` with the nearest name if there is no such context. */
  async named(name: string): Promise<Context> {
    const { contexts } = await this.load();
    const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
    if (found !== undefined) return found;
    const known = Object.keys(contexts);
    throw new AppError("not_found", `There is no context ${name}${suggestion(name, known)} Run: odp context list`);
  }

  /** Adds or replaces a context, and makes it the current one. */
  async add(name: string, context: Context): Promise<void> {
    requireName(name);
    const { contexts } = await this.load();
    await this.#save({ current: name, contexts: { ...contexts, [name]: context } });
  }

  /** Makes a context the current one. */
  async use(name: string): Promise<void> {
    await this.named(name);
    await this.#save({ ...(await this.load()), current: name });
  }

  async remove(name: string): Promise<void> {
    const { current, contexts } = await this.load();
    const others = Object.fromEntries(Object.entries(contexts).filter(([other]) => other !== name));
    await this.#save({ current: current === name ? undefined : current, contexts: others });
  }

  /** Reads without waiting: loading `node:fs/promises` takes longer than reading this file. */
  #text(): string | undefined {
    try {
      const { mode, size } = lstatSync(this.path);
      if (this.#platform !== "win32" && (mode & 0o077) !== 0)
        throw new AppError(
          "denied",
          `Others may read ${this.path}, which has credentials. Run: chmod 600 ${this.path}`,
        );
      if (size > CLI_CONTEXTS_MAX_BYTES) throw this.#damaged();
      return readFileSync(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Replaces the file as a whole. Its folder is made for the owner alone. */
  async #save(contexts: Contexts): Promise<void> {
    const { randomBytes } = await import("node:crypto");
    const { mkdir, open, rename, rm } = await import("node:fs/promises");
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    const draft = `${this.path}.${randomBytes(6).toString("hex")}`;
    try {
      const handle = await open(draft, "wx", 0o600);
      try {
        await handle.writeFile(`${JSON.stringify({ format: 1, ...contexts }, undefined, 2)}\n`);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(draft, this.path);
    } finally {
      await rm(draft, { force: true });
    }
  }

  #damaged(): AppError {
    return new AppError("invalid", `${this.path} is damaged. Delete it, and sign in again: odp login <url>`);
  }
}

/** `AppError("invalid")` for a name that is awkward to type. */
export function requireName(name: string): void {
  if (NAME.test(name)) return;
  throw new AppError("invalid", `${name} is no name of a context: letters, digits, dots, hyphens and underscores.`);
}
