// The methods of Node's EventEmitter that a program with `redlock` uses, for every runtime.

export class Emitter {
  #listeners = new Map();

  on(event, listener) {
    this.#listeners.set(event, [...this.#of(event), { listener, call: listener }]);
    return this;
  }

  once(event, listener) {
    const call = (...values) => {
      this.off(event, listener);
      return listener.apply(this, values);
    };
    this.#listeners.set(event, [...this.#of(event), { listener, call }]);
    return this;
  }

  off(event, listener) {
    const all = this.#of(event);
    const index = all.findLastIndex((entry) => entry.listener === listener);
    this.#listeners.set(event, all.filter((_, i) => i !== index));
    return this;
  }

  addListener(event, listener) {
    return this.on(event, listener);
  }

  removeListener(event, listener) {
    return this.off(event, listener);
  }

  removeAllListeners(event) {
    if (event === undefined) this.#listeners.clear();
    else this.#listeners.delete(event);
    return this;
  }

  listenerCount(event) {
    return this.#of(event).length;
  }

  emit(event, ...values) {
    const all = this.#of(event);
    for (const { call } of all) call.apply(this, values);
    return all.length > 0;
  }

  #of(event) {
    return this.#listeners.get(event) ?? [];
  }
}
