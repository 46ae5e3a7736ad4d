/** Name of a user of a host, which is safe in a line of a shell. */
export const USER_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;
