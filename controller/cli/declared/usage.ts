import { AppError } from "../../../common/errors.ts";

/** `EX_USAGE` of sysexits.h. */
export const WRONG_USAGE = 64;

/** The command line is wrong, and nothing was done. */
export class UsageError extends AppError {
  constructor(message: string) {
    super("invalid", message);
    this.name = "UsageError";
  }
}
