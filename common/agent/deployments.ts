/** Message of a removal that found nothing to remove. Its state is `ok`, and nothing was run. */
export const NOT_DEPLOYED = "not deployed";
