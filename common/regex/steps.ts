import { AppError } from "../errors.ts";
import { PATTERN_STEPS_MAX } from "../limits.ts";

/** Returns true if a program with this many instructions may search a text of this many characters. */
export function isWithinSteps(characters: number, instructions: number): boolean {
  return characters * instructions <= PATTERN_STEPS_MAX;
}

export function tooManySteps(characters: number, instructions: number): AppError {
  const most = Math.floor(PATTERN_STEPS_MAX / instructions);
  return new AppError(
    "too_large",
    `The text has ${characters} characters; the regular expression searches at most ${most}.`,
    {
      details: { limit: "PATTERN_STEPS_MAX" },
    },
  );
}
