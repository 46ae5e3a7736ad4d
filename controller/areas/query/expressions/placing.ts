import { AppError, isAppError } from "../../../../common/errors.ts";
import { NOWHERE, positionAt, type Span } from "../../../../common/mql/index.ts";

/**
 * The part of the text that an error is about. It is kept outside the error, because a span means nothing without its
 * text.
 */
const places = new WeakMap<AppError, Span>();

/** Runs the work. Its errors get this part of the text, unless an inner call already gave them a smaller one. */
export function about<T>(span: Span, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw placed(error, span);
  }
}

export async function aboutLater<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw placed(error, span);
  }
}

/**
 * The error of work about this part of the text, unless an inner call already gave it a smaller one. `NOWHERE` is no
 * part.
 */
export function placed(error: unknown, span: Span): unknown {
  if (isAppError(error) && span !== NOWHERE && !places.has(error)) places.set(error, span);
  return error;
}

/**
 * The error with line and column in its details. They are also in its message if the text has several lines or
 * statements.
 */
export function located(error: unknown, text: string, statements: number): unknown {
  const span = isAppError(error) ? places.get(error) : undefined;
  if (!isAppError(error) || !span || error.code === "internal" || error.details?.line !== undefined) return error;
  const { line, column } = positionAt(text, span.start);
  const isLong = statements > 1 || text.trim().includes("\n");
  const message = isLong ? `${error.message} (line ${line} column ${column})` : error.message;
  return new AppError(error.code, message, { details: { ...error.details, line, column }, cause: error });
}
