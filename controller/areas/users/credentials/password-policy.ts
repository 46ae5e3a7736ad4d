import { ZxcvbnFactory } from "@zxcvbn-ts/core";
import {
  PASSWORD_ESTIMATED_MAX_CHARACTERS,
  PASSWORD_MAX_BYTES,
  PASSWORD_MIN_CHARACTERS,
  PASSWORD_SCORE_MIN,
} from "../../../../common/limits.ts";
import { adjacencyGraphs, dictionary } from "@zxcvbn-ts/language-common";
import { OWN_WORDS } from "./common-passwords.ts";

const ESTIMATE = new ZxcvbnFactory({
  dictionary: { passwords: dictionary["passwords-common"], own: [...OWN_WORDS] },
  graphs: { qwerty: adjacencyGraphs.qwerty, keypad: adjacencyGraphs.keypad },
  maxLength: PASSWORD_ESTIMATED_MAX_CHARACTERS,
});

/** Same parameters and answer as `passwordFault`. */
export type PasswordPolicy = (password: string, known?: readonly string[]) => string;

/** A password policy that also knows words of this installation. Such words do not make a password stronger. */
export function passwordPolicy(words: readonly string[]): PasswordPolicy {
  return (password, known = []) => passwordFault(password, [...known, ...words]);
}

/**
 * The reason why a password is refused, as a text for its author; empty if it is accepted. `known` are words that
 * attackers try first, such as the names of the user and the company.
 */
export function passwordFault(password: string, known: readonly string[] = []): string {
  if ([...password].length < PASSWORD_MIN_CHARACTERS)
    return `A password has at least ${String(PASSWORD_MIN_CHARACTERS)} characters.`;
  if (Buffer.byteLength(password) > PASSWORD_MAX_BYTES)
    return `A password has at most ${String(PASSWORD_MAX_BYTES)} bytes.`;
  const words = known.filter((word) => word !== "").map((word) => word.slice(0, PASSWORD_ESTIMATED_MAX_CHARACTERS));
  const { score } = ESTIMATE.check(password.slice(0, PASSWORD_ESTIMATED_MAX_CHARACTERS), words);
  return score >= PASSWORD_SCORE_MIN ? "" : "The password is too easy to guess: make it longer, of unrelated words.";
}
