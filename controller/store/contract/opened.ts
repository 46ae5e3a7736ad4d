import { afterAll, beforeAll } from "vitest";
import type { ContractSubject, OpenSubject } from "./harness.ts";

/**
 * Opens a subject before the tests of the enclosing block and closes it after them. Call the returned function only
 * inside tests and hooks.
 */
export function opened(open: OpenSubject): () => ContractSubject {
  let subject: ContractSubject;
  beforeAll(async () => {
    subject = await open();
  });
  afterAll(async () => subject?.close());
  return () => subject;
}
