// What this browser remembers; nothing where it may not.
export const keep = (name, value) => { try { localStorage.setItem(`rowfeed-${name}`, value); } catch { /* none */ } };
export const kept = (name) => { try { return localStorage.getItem(`rowfeed-${name}`); } catch { return null; } };
