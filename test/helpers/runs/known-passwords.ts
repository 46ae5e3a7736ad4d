import { createRequire } from "node:module";
import type * as argon2Module from "@node-rs/argon2";

/**
 * The hash of a password costs ten milliseconds of the processor, and most tests use the same few passwords: a process
 * of tests makes each hash, and checks each password against it, once. For tests that count or compare hashes
 * `vi.mock` puts its own in place.
 */
type Argon2 = Pick<typeof argon2Module, "hash" | "verify">;

/** Marks the library as one that remembers: files that share a process load this file again. */
const REMEMBERS = Symbol.for("odp.test.argon2");

// Before anything imports it: names that are imported are those that a CommonJS module has at its first import.
const argon2 = createRequire(import.meta.url)("@node-rs/argon2") as Argon2 & { [REMEMBERS]?: true };

if (argon2[REMEMBERS] === undefined) {
  const { hash, verify } = argon2;
  const known = new Map<string, Promise<never>>();
  const once = <T>(key: readonly unknown[], make: () => Promise<T>): Promise<T> => {
    const name = JSON.stringify(key);
    const made = (known.get(name) as Promise<T> | undefined) ?? make();
    known.set(name, made as Promise<never>);
    return made;
  };
  argon2.hash = (password, options) => once(["hash", String(password), options], () => hash(password, options));
  argon2.verify = (hashed, password, options) =>
    once(["verify", String(hashed), String(password)], () => verify(hashed, password, options));
  argon2[REMEMBERS] = true;
}
