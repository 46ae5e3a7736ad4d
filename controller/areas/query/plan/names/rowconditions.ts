import { AppError } from "../../../../../common/errors.ts";
import { type Condition, parseConditionText } from "../../../../../common/mql/index.ts";

export function parseRowCondition(text: string): Condition {
  return usable(() => parseConditionText(text));
}

/** Hides the errors of a row condition from the principal whom it restricts. */
export function usable<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new AppError(
      "internal",
      "[Exec] A row condition among the rights of this user cannot be used: an administrator has to correct it.",
      { cause: error },
    );
  }
}
