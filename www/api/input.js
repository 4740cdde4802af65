/** The checks of a request's parameters, before any use of them. */

/** A parameter is missing or invalid. The message says what is accepted. */
export class BadInputError extends Error {}

/** The query of a request. */
export class Query {
  #parameters;

  constructor(parameters) {
    this.#parameters = parameters;
  }

  /** Returns a short name that may become part of a Redis key. */
  name(parameter) {
    const text = this.#single(parameter);
    if (!/^[a-z0-9-]{1,32}$/.test(text)) {
      throw new BadInputError(`"${parameter}" must be 1 to 32 characters of a-z, 0-9 and "-".`);
    }
    return text;
  }

  /** Returns one of `words`; `otherwise`, if given, when the parameter is missing. */
  oneOf(parameter, words, otherwise) {
    if (otherwise !== undefined && !this.#parameters.has(parameter)) return otherwise;
    const text = this.#single(parameter);
    if (!words.includes(text)) throw new BadInputError(`"${parameter}" must be one of ${words.join(", ")}.`);
    return text;
  }

  /**
   * Returns a whole number from `least` to `most`; `otherwise`, if given, when the parameter is
   * missing.
   */
  integer(parameter, least, most, otherwise) {
    if (otherwise !== undefined && !this.#parameters.has(parameter)) return otherwise;
    const text = this.#single(parameter);
    const number = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(number >= least && number <= most)) {
      throw new BadInputError(`"${parameter}" must be a whole number from ${least} to ${most}.`);
    }
    return number;
  }

  #single(parameter) {
    const values = this.#parameters.getAll(parameter);
    if (values.length !== 1) throw new BadInputError(`"${parameter}" must be given once.`);
    return values[0];
  }
}
