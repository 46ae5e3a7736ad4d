import { AppError } from "../../../common/errors.ts";

/** Level names in the order of their numbers. */
export const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "panic"] as const;

export function levelOf(name: (typeof LEVELS)[number]): number {
  return LEVELS.indexOf(name);
}

/** Level numbers in ascending order. Each text is a number or a name in any case. Without texts: all levels. */
export function readLevels(texts: readonly string[]): readonly number[] {
  const numbers = new Set(texts.length === 0 ? LEVELS.keys() : texts.map(readLevel));
  return [...numbers].sort((a, b) => a - b);
}

function readLevel(text: string): number {
  const word = text.trim().toLowerCase();
  const number = /^\d$/.test(word) ? Number(word) : (LEVELS as readonly string[]).indexOf(word);
  if (number in LEVELS) return number;
  throw new AppError(
    "invalid",
    `There is no level ${text.slice(0, 100)}: 0 to ${LEVELS.length - 1}, or ${LEVELS.join(", ")}.`,
  );
}
