// Nothing: a precompiled header belongs to a program, and this one is only there to own it.
int main() { return 0; }
